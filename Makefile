# Everything that is done here is done by cargo; this file only gives it short names.
.PHONY: help demo demo-down test check e2e gen cluster-up cluster-down
.DEFAULT_GOAL := help

help: ## this list
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 22

demo: ## from nothing to a running Kanidm with people in it; KANIDM_IMAGE=... takes that server
	cargo xtask demo

demo-down: ## remove all that `make demo` made
	cargo xtask demo --down

test: ## every gate, from formatting to end-to-end on a real cluster; as root
	cargo xtask test

check: ## the quick gates for daily work: no root, no cluster
	cargo xtask check

e2e: ## only the end-to-end tests
	cargo xtask e2e

gen: ## write what is generated
	cargo xtask gen

cluster-up: ## a one-node Kubernetes on this machine
	cargo xtask cluster up

cluster-down: ## end it
	cargo xtask cluster down
