{{- /* Names and labels that all templates share. */ -}}
{{- define "kaniop.fullname" -}}
{{- if contains "kaniop" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-kaniop" .Release.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "kaniop.serviceAccount" -}}
{{- if .Values.serviceAccount.name }}{{ .Values.serviceAccount.name }}{{ else if .Values.serviceAccount.create }}{{ include "kaniop.fullname" . }}{{ else }}{{ fail "serviceAccount.name is needed when serviceAccount.create is false" }}{{ end }}
{{- end }}

{{- define "kaniop.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "kaniop.selector" -}}
app.kubernetes.io/name: kaniop
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "kaniop.labels" -}}
{{ include "kaniop.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}
