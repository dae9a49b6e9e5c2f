//! The table of OAuth2 clients: field by field, what the spec wants of the entry.

use kaniop_api::oauth2::{ClaimMap, JoinStrategy, ScopeMap};
use kaniop_api::{KanidmOAuth2Client, KanidmOAuth2ClientSpec};

use super::credential::{self, Credential};
use super::{Field, IdentityKind, Wanted};
use crate::entry::{Attr, Collection, Entry, Join, Newcomer, Shape, Snapshot, normal_url};
use crate::name::Owner;

/// SHA-256 of the client's picture.
pub const IMAGE: Attr = Attr::new("image", Shape::Digest);

impl IdentityKind for KanidmOAuth2Client {
    type Spec = KanidmOAuth2ClientSpec;
    const KIND: &'static str = "KanidmOAuth2Client";
    const COLLECTION: Collection = Collection::OAuth2Client;
    const FIELDS: &'static [Field<Self::Spec>] = &[
        Field::new("displayname", Attr::new("displayname", Shape::Text), |s| Wanted::text(Some(&s.displayname))),
        Field::new("description", Attr::new("description", Shape::Text), |s| Wanted::text(s.description.as_ref())),
        Field::new("origin", Attr::new("oauth2_rs_origin_landing", Shape::Text), |s| Wanted::url(&s.origin)),
        Field::new("redirectUrl", Attr::new("oauth2_rs_origin", Shape::Urls), |s| Wanted::urls(&s.redirect_url)),
        Field::new("scopeMap", Attr::new("oauth2_rs_scope_map", Shape::Scopes), |s| scopes(s.scope_map.as_deref())),
        Field::new("supScopeMap", Attr::new("oauth2_rs_sup_scope_map", Shape::Scopes), |s| {
            scopes(s.sup_scope_map.as_deref())
        }),
        Field::new("claimMap", Attr::new("oauth2_rs_claim_map", Shape::Claims), |s| claims(s.claim_map.as_deref())),
        switch("strictRedirectUrl", "oauth2_strict_redirect_uri", |s| Wanted::bool(s.strict_redirect_url)),
        switch("preferShortUsername", "oauth2_prefer_short_username", |s| Wanted::bool(s.prefer_short_username)),
        switch("allowLocalhostRedirect", "oauth2_allow_localhost_redirect", |s| {
            Wanted::bool(s.allow_localhost_redirect)
        }),
        switch("allowInsecureClientDisablePkce", "oauth2_allow_insecure_client_disable_pkce", |s| {
            Wanted::bool(s.allow_insecure_client_disable_pkce)
        }),
        switch("jwtLegacyCryptoEnable", "oauth2_jwt_legacy_crypto_enable", |s| {
            Wanted::bool(s.jwt_legacy_crypto_enable)
        }),
        switch("disableConsentPrompt", "oauth2_consent_prompt_enable", |s| {
            Wanted::bool(s.disable_consent_prompt.map(|disabled| !disabled))
        }),
        Field::new("refreshTokenExpiry", Attr::new("oauth2_refresh_token_expiry", Shape::Int), |s| {
            Wanted::int(s.refresh_token_expiry)
        }),
    ];
    const WATCHED: &'static [Attr] = &[IMAGE];

    fn spec(&self) -> &Self::Spec {
        &self.spec
    }

    fn image(spec: &Self::Spec) -> Option<&str> {
        spec.image.as_ref().map(|image| image.url.as_str())
    }

    fn secrets(owner: &Owner<'_>, spec: &Self::Spec) -> Vec<credential::Wanted> {
        let aliases = |names: Option<&Vec<String>>| names.into_iter().flatten().cloned().collect();
        let of = spec.secret_key_aliases.as_ref();
        let credential = Credential::ClientSecret {
            id: owner.entry.to_owned(),
            id_aliases: aliases(of.and_then(|of| of.client_id.as_ref())),
            secret_aliases: aliases(of.and_then(|of| of.client_secret.as_ref())),
        };
        let wanted = credential::Wanted {
            name: format!("{}-kanidm-oauth2-credentials", owner.name),
            credential,
            rotation: spec.secret_rotation.clone(),
            template: spec.secret_template.clone().unwrap_or_default(),
        };
        if spec.public { Vec::new() } else { vec![wanted] }
    }

    fn may_be(spec: &Self::Spec, entry: &Entry) -> bool {
        entry.classes.contains("oauth2_resource_server_public") == spec.public
    }

    fn newcomer(spec: &Self::Spec, _seen: &Snapshot) -> Option<Newcomer> {
        let (displayname, public) = (spec.displayname.clone(), spec.public);
        normal_url(&spec.origin).map(|landing| Newcomer::OAuth2Client { displayname, landing, public })
    }
}

const fn switch(
    name: &'static str,
    attr: &'static str,
    want: fn(&KanidmOAuth2ClientSpec) -> Wanted,
) -> Field<KanidmOAuth2ClientSpec> {
    Field::new(name, Attr::new(attr, Shape::Bool), want)
}

fn scopes(map: Option<&[ScopeMap]>) -> Wanted {
    map.map_or(Wanted::Unmanaged, |map| {
        Wanted::Scopes(map.iter().map(|row| (row.group.clone(), row.scopes.iter().cloned().collect())).collect())
    })
}

fn claims(map: Option<&[ClaimMap]>) -> Wanted {
    let join = |strategy| match strategy {
        JoinStrategy::Csv => Join::Comma,
        JoinStrategy::Ssv => Join::Space,
        JoinStrategy::Array => Join::List,
    };
    let claim = |claim: &ClaimMap| {
        let values = claim.values_map.iter().map(|row| (row.group.clone(), row.values.iter().cloned().collect()));
        (claim.name.clone(), join(claim.join_strategy), values.collect())
    };
    map.map_or(Wanted::Unmanaged, |map| Wanted::Claims(map.iter().map(claim).collect()))
}
