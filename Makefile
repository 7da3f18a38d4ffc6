# The verbs of this house. `make help` lists them.

CARGO ?= cargo
LASTHOP = $(or $(CARGO_TARGET_DIR),target)/release/lasthop
OUT ?= out
VERSION ?= 0.2.0

.DEFAULT_GOAL := help
.PHONY: help setup build demo test test-kernels test-virtual-time test-guests test-wifi test-mac80211 test-vpn test-containers test-cdg results lint bench soak fuzz fuzz-relations wheels packages test-packages release supply-chain site test-site docs clean

help: ## list the verbs
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## install the system packages that are missing (apt-get, as root or with sudo)
	@scripts/system-packages

build: setup ## build the lasthop command (target/release/lasthop)
	$(CARGO) build --release --locked --package lasthop-cli

demo: build ## ten hosts upload through one access point: without control, with the papers' rule, the best fixed bound, and policy lasthop (once built 3 minutes as root, else seconds)
	@scripts/demo $(LASTHOP) $(OUT)/demo

test: setup ## every test; those of the kernel and the laboratory need root
	@scripts/test

lint: setup ## formatting and clippy, warnings are errors; the lock file of fuzz/
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- --deny warnings
	@scripts/fuzz-lock

test-kernels: setup ## doctor, the tests of crates/kernel and a run on kernel hosts under Debian's 6.1, 6.12 and newest kernel, each in an emulated machine (hours; qemu-system-x86); ends with a table
	@scripts/test-kernels $(OUT)/kernels

test-virtual-time: setup ## every test of kernel hosts in virtual time, of which `make test` has the short ones: simulated hosts against Debian's 6.12, agents, laws, cell by cell (an hour)
	LASTHOP_REQUIRE_ROOT_TESTS=1 $(CARGO) test --locked --package lasthop-cli --test virtual_time -- --include-ignored

test-guests: setup ## the agents' tests in an emulated machine, in virtual time; TIMES=100: with so many seeds, each that fails is named and fails again
	TIMES=$(or $(TIMES),1) LASTHOP_TESTS=guests $(CARGO) test --locked --workspace --lib --bins --tests --no-fail-fast --config "target.'cfg(all())'.runner = ['$(CURDIR)/scripts/test-binary']"

test-wifi: setup ## the agent on simulated radios (mac80211_hwsim) under Debian's 6.12 in an emulated machine: two access points, roaming, retries, PHY rates (hostapd, wpasupplicant, iw, tcpdump, iperf3)
	@scripts/test-wifi $(OUT)/kernels

test-mac80211: setup ## Linux's mac80211 on simulated radios beside the model, a dozen cells of 802.11g and 802.11n, under Debian's 6.12 in an emulated machine (hostapd, wpasupplicant, iw; an hour)
	@scripts/test-mac80211 $(OUT)/kernels

test-vpn: build ## the agent on a host whose traffic goes through WireGuard, and OpenVPN, between two network namespaces (root; iperf3, wireguard-go, wireguard-tools, openvpn; a minute)
	@scripts/test-vpn $(LASTHOP)

test-containers: build ## the agent beside containers of Docker and podman, which upload to a server in a network namespace (root; iperf3, and what there is of docker.io, podman, slirp4netns, uidmap, passt; two minutes)
	@scripts/test-containers $(LASTHOP)

test-cdg: setup ## Linux's own CDG beside cdg-linux through one bottleneck, under Debian's 6.12 in virtual time (qemu-system-x86, iperf3; some minutes)
	@scripts/test-cdg $(OUT)/kernels

results: $(if $(NAME)$(ALL),build) ## fill the tables of README.md and docs from docs/results/data (seconds); NAME=office runs its command again, ALL=1 every one (hours; as root also those on kernel hosts)
	@LASTHOP=$(abspath $(LASTHOP)) scripts/results $(if $(ALL),--all,$(NAME))

bench: build ## speed of the simulator, overhead in the kernel and of the agent, held against the limits of docs/results/costs.md (some minutes; root for the latter two)
	$(CARGO) bench --locked --package lasthop-sim --bench speed
	$(CARGO) bench --locked --package lasthop-network --bench carry
	$(CARGO) bench --locked --package lasthop-kernel --bench overhead
	$(CARGO) bench --locked --package lasthop-agent --bench footprint

soak: build ## the agent for long: 24 h of its decisions in minutes, then two hours in network namespaces as root; fails if memory, descriptors, maps or the log grow (docs/results/costs.md)
	@scripts/soak --out $(OUT)/soak

fuzz: setup ## what strangers can send, 60 s each: forged beacons against the codec, the peer table and a policy; link reports against the codec and the law (FUZZ_SECONDS=60; needs g++)
	@scripts/fuzz

fuzz-relations: setup ## relations between runs of random scenarios, other ones each time: the same twice, an idle host more, blocks in parts, a longer run (minutes; RELATIONS_CASES=300 of each)
	@export PROPTEST_RNG_SEED=$${PROPTEST_RNG_SEED:-$$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')} RELATIONS_CASES=$${RELATIONS_CASES:-300}; \
	echo "PROPTEST_RNG_SEED=$$PROPTEST_RNG_SEED RELATIONS_CASES=$$RELATIONS_CASES"; \
	$(CARGO) test --release --locked -p lasthop-sim --test relations

wheels: ## the Python package's wheels for amd64 and arm64 (out/wheels), each tried (quarter of an hour; rustup; qemu-user-static and debootstrap to try arm64)
	@scripts/wheels $(OUT)/wheels

packages: setup ## .deb, .rpm and tarball for amd64 and arm64, with the list of their parts (out/packages; ten minutes; rustup, Debian)
	@scripts/packages $(OUT)/packages

test-packages: ## install, upgrade, remove and purge these packages in fresh roots of Debian 12 and 13, and by rpm (root; debootstrap, rpm, qemu-user-static)
	@scripts/test-packages $(OUT)/packages

release: setup ## VERSION=0.2.0: packages, wheels, notes and sums of a release in out/release, and how to publish it (half an hour; SIGN=KEY signs by gpg; DRY=1: seconds, nothing is compiled)
	@scripts/release $(VERSION) $(if $(SIGN),--sign $(SIGN)) $(if $(DRY),--dry-run)

supply-chain: ## licences, sources and known holes of all crates, by cargo-deny (built once, two minutes; the network for the latter)
	@scripts/supply-chain

site: setup ## the playground and its lessons with the book (out/site/index.html), the simulator compiled for browsers (rustup; as `docs` does, mdBook once)
	@scripts/site $(OUT)/site

test-site: site build ## the pages of `site` in headless Chromium: results beside the command's, lessons, links, widths from 360 to 1920 pixels, axe-core (chromium, node, npm; some minutes)
	@scripts/test-site $(OUT)/site $(LASTHOP) $(OUT)/site-pictures

docs: ## the pages of docs/ as a book with a search (out/book/index.html), every link checked (mdBook is built once, three minutes; needs python3)
	@scripts/book $(OUT)/book

clean: ## remove what was built and measured
	$(CARGO) clean
	rm -rf $(OUT)
