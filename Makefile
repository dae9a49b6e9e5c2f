# Everything that is done here is done by cargo; this file only gives it short names.
.PHONY: help tasks demo demo-down test check e2e bench gen cluster-up cluster-down
.DEFAULT_GOAL := help

help: ## this list
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 22

tasks: ## the program that does all the rest; a few minutes the first time
	@cargo build --bin xtask

demo: tasks ## from nothing to a running Kanidm with people in it; KANIDM_IMAGE=... takes that server
	cargo xtask demo

demo-down: tasks ## remove all that `make demo` made
	cargo xtask demo --down

test: tasks ## every gate, from formatting to end-to-end on a real cluster; as root
	cargo xtask test

check: tasks ## the quick gates for daily work: no root, no cluster
	cargo xtask check

e2e: tasks ## only the end-to-end tests
	cargo xtask e2e

bench: tasks ## how fast, how big, how quiet: half an hour on release builds; a short run is a gate of `make test`
	cargo xtask bench

gen: tasks ## write what is generated
	cargo xtask gen

cluster-up: tasks ## a one-node Kubernetes on this machine
	cargo xtask cluster up

cluster-down: tasks ## end it
	cargo xtask cluster down
