# Installs and packages the programs as a service. Included by the Makefile.
#
#   make install      install larderd, larderctl and larderweb below PREFIX (/usr/local), with manual pages, completion for shells, the
#                     units of systemd and, if it is missing, SYSCONFDIR/larder/larderd.conf (/etc); make install-files without programs
#   make deb          a Debian package, below .build/deb; make deb-test installs, uses, upgrades and removes it in a new
#                     system of this machine's Debian, and in Debian 13
#   make dist         a tarball, below .build/dist, of programs, units and manual pages that needs no library but C's; larderweb needs
#                     libmicrohttpd too. make image: an OCI archive of larderd and larderctl, below .build/image. Both are tested, as root
#   make service-test test the service under systemd in a new system; an application writes for FILL_SECONDS
PREFIX ?= /usr/local
SYSCONFDIR ?= /etc

.PHONY: programs install install-files
programs: deps
	$(SWIFT) build -c release --static-swift-stdlib --scratch-path .build/install --product larderd
	$(SWIFT) build -c release --static-swift-stdlib --scratch-path .build/install --product larderctl
	$(SWIFT) build -c release --static-swift-stdlib --scratch-path .build/install --product larderweb

install: programs
	install -d $(DESTDIR)$(PREFIX)/bin
	install -m 755 $(addprefix .build/install/release/,larderd larderctl larderweb) $(DESTDIR)$(PREFIX)/bin
	@$(MAKE) --no-print-directory install-files
	@[ -n "$(DESTDIR)" ] || ! [ -d /run/systemd/system ] || \
	  echo "to run it as a service: systemd-sysusers && systemctl daemon-reload && systemctl enable --now larderd.socket"

# Inserts the path of the programs into the service's files.
install_with_paths = sed 's|/usr/bin/larder|$(PREFIX)/bin/larder|; s|=-/etc/larder|=-$(SYSCONFDIR)/larder|' $(1) >$(2)/$(notdir $(1)) \
  && chmod 644 $(2)/$(notdir $(1))
SYSTEM_UNITS = $(DESTDIR)$(PREFIX)/lib/systemd/system
USER_UNITS = $(DESTDIR)$(PREFIX)/lib/systemd/user
SHARE = $(DESTDIR)$(PREFIX)/share
# Debian's zsh looks here.
ZSH = $(SHARE)/zsh/$(if $(filter /usr,$(PREFIX)),vendor-completions,site-functions)
install-files:
	install -d $(SYSTEM_UNITS) $(USER_UNITS) $(DESTDIR)$(PREFIX)/lib/sysusers.d $(foreach n,1 7 8,$(SHARE)/man/man$n) \
	  $(SHARE)/bash-completion/completions $(ZSH) $(SHARE)/fish/vendor_completions.d \
	  $(DESTDIR)$(PREFIX)/share/doc/larder $(DESTDIR)$(SYSCONFDIR)/larder
	install -m 644 Sources/packaging/systemd/larderd.socket $(SYSTEM_UNITS)
	install -m 644 Sources/packaging/systemd/user/larderd.socket $(USER_UNITS)
	$(call install_with_paths,Sources/packaging/systemd/larderd.service,$(SYSTEM_UNITS))
	$(call install_with_paths,Sources/packaging/systemd/user/larderd.service,$(USER_UNITS))
	$(call install_with_paths,Sources/packaging/systemd/larderweb.service,$(SYSTEM_UNITS))
	$(call install_with_paths,Sources/packaging/systemd/user/larderweb.service,$(USER_UNITS))
	$(call install_with_paths,Sources/packaging/launchd/larder.larderd.plist,$(DESTDIR)$(PREFIX)/share/doc/larder)
	install -d $(SHARE)/doc/larder/larderd.service.d
	install -m 644 Sources/packaging/systemd/larderd.service.d/origins.conf $(SHARE)/doc/larder/larderd.service.d
	install -m 644 Sources/packaging/sysusers.d/larder.conf $(DESTDIR)$(PREFIX)/lib/sysusers.d
	$(foreach n,1 7 8,install -m 644 Sources/packaging/man/*.$n $(SHARE)/man/man$n;)
	$(foreach n,larderd larderctl larderweb,install -m 644 Sources/packaging/completions/$n.bash $(SHARE)/bash-completion/completions/$n;)
	install -m 644 Sources/packaging/completions/_larder* $(ZSH)
	install -m 644 Sources/packaging/completions/*.fish $(SHARE)/fish/vendor_completions.d
	[ -e $(DESTDIR)$(SYSCONFDIR)/larder/larderd.conf ] || \
	  install -m 644 Sources/packaging/larderd.conf $(DESTDIR)$(SYSCONFDIR)/larder

# The compiled programs: with PRODUCTS=.build/debug, make dist links those that were compiled for the tests.
PRODUCTS = .build/install/release
DIST = .build/dist
IMAGE = .build/image/larder.tar
.PHONY: dist image
dist: $(if $(filter .build/install/%,$(PRODUCTS)),programs,deps)
	Sources/packaging/pack.sh $(PRODUCTS) $(DIST) $(BUILD_PACKAGES) libbsd-dev libncurses-dev
	@$(INSTALL) redis-tools
	$(SUDO) Sources/packaging/test-root.sh $(DIST)/*.tar.gz

# Needs no network: the image is made of the tarball's programs and of files of this system.
image: dist
	@$(INSTALL) buildah ca-certificates jq
	$(SUDO) Sources/packaging/make-image.sh $(DIST)/*/ $(IMAGE)
	$(SUDO) Sources/packaging/test-root.sh $(IMAGE)

# Builds in a separate directory, because dpkg expects `debian` at the root and writes there.
DEB = .build/deb/larder
.PHONY: deb deb-test service-test
deb: deps
	@$(INSTALL) debhelper dpkg-dev lintian
	rm -rf .build/deb && mkdir -p $(DEB) && cp -r Sources/packaging/debian $(DEB)
	cd $(DEB) && LARDER=$(CURDIR) dpkg-buildpackage --build=binary --unsigned-changes
	lintian --fail-on error,warning .build/deb/*.changes
	@ls .build/deb/*.deb

deb-test: deb
	@$(INSTALL) mmdebstrap python3 autopkgtest
	Sources/packaging/test-package.sh .build/deb
	Sources/packaging/test-package.sh .build/deb trixie

service-test: deb
	@$(INSTALL) mmdebstrap python3 prometheus chromium redis-server redis-tools
	Sources/packaging/test-service.sh .build/deb
