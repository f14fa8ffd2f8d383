# SPDX-License-Identifier: Apache-2.0
# Builds the library, the command and the tests. `make help` lists what can be asked for.
#
# Sources are found by wildcard per folder: a new file needs no line here. The core is compiled
# twice, for the library that lives in other people's processes (position independent, no
# exceptions, no libstdc++) and plain for the command and the tests. A change of flags rebuilds:
# every object depends on build/flags. SAN=address,undefined or SAN=thread builds a variant in a
# folder of its own. EAGER=1 does, too: there small I/O asks for leases at once. V=1 shows the
# commands.

MAKEFLAGS += --no-builtin-rules
.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
comma := ,

CXX     ?= g++
CC      ?= gcc
CLANGXX ?= clang++
ifeq ($(origin CXX),default)
CXX := g++
endif
ifeq ($(origin CC),default)
CC := gcc
endif

PREFIX  ?= /usr/local
DESTDIR ?=
SECONDS ?= 600
MINUTES ?= 30
SAN     ?=
EAGER   ?=
O := build$(if $(SAN),/$(subst $(comma),-,$(SAN)))$(if $(EAGER),/eager)

ifeq ($(V),1)
say = $(2)
else
say = @printf '  %-8s %s\n' '$(1)' '$@'; $(2)
endif

# ---- flags ----

INCLUDES  := -Ilibinterpose -Idaemon -I.
WARN      := -Wall -Wextra -Wpointer-arith -Wcast-qual
san_flags := $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer -fno-sanitize-recover=all)
CXXFLAGS  ?= -O2 -g1
common    := -std=c++20 $(CXXFLAGS) $(WARN) $(INCLUDES) $(san_flags)

# Every call passes here: no stubs on the way to libc, small records set by plain stores, and short
# loops that do not straddle what a processor fetches at once (a stat under a limit: 55 -> 22 ns).
guest_flags := $(common) -fPIC -fno-exceptions -fno-rtti -fno-threadsafe-statics \
  -fno-plt -fno-tree-slp-vectorize -falign-functions=32 -falign-loops=32 \
  -fvisibility=hidden -ftls-model=initial-exec -fno-stack-protector
ifneq ($(EAGER),)
guest_flags += -DSLUICE_EAGER
endif
guest_link  := -shared -Wl,-z,now -Wl,-Bsymbolic -Wl,--as-needed
ifeq ($(SAN),)
layout      := libinterpose/layout.ld
guest_flags += -ffunction-sections
guest_link  += -nostdlib -Wl,-z,defs -Wl,-z,norelro -Wl,-T,$(layout)
guest_libs  := -lc -lgcc
endif

plain_flags := $(common) -pthread
test_flags  := -std=c++20 -O1 -g1 $(WARN) $(INCLUDES) -Itest $(san_flags) -pthread
program_cxx := -std=c++20 -O1 -g1 -pthread -Ilibinterpose -I.
program_c   := -O1 -g1 -pthread -D_GNU_SOURCE
bench_flags := -std=c++20 -O2 -g1 $(WARN) $(INCLUDES) -pthread
# Without optimization: a third of the compilation, and as many runs a second.
fuzz_flags  := -std=c++20 -O0 -g1 $(INCLUDES) -fsanitize=address,undefined \
  -fno-sanitize-recover=undefined
depend      = -MMD -MP -MF $@.d -MT $@

# ---- sources ----

guest_src   := $(wildcard libinterpose/*.cc libinterpose/*/*.cc libinterpose/*.S)
# A room is a folder whose sources may be linked into any program that names it; a main.cc or
# X_main.cc is a program. `programs` below says which rooms each needs.
rooms       := libinterpose/core policies $(addprefix daemon/,base policy segment \
  background keepers local lease wire runtime verbs verbs/views epochs node cluster sluiced \
  journal commands/cli commands/trace commands/replay commands/replay/simulate commands/report \
  commands/slurm commands/calibrate)
sources_of   = $(filter-out %/main.cc %_main.cc,$(wildcard $(1)/*.cc))
archive_of   = $(foreach room,$(1),$(O)/rooms/$(subst /,-,$(room)).a)
# Most of a compilation is headers: GROUP sources that lie together are compiled as one, in a third
# of the time. Such a group is called after the first of them. GROUP=1 compiles each alone.
GROUP       ?= 8
groups_of    = $(shell printf '%s\n' $(1) | xargs -rn $(GROUP) | tr ' ' ',')
first_of     = $(firstword $(subst $(comma), ,$(1)))
group_files  = $(foreach g,$(call groups_of,$(1)),$(call group_file,$(g)))
in_daemon    = $(addprefix daemon/,$(1))
has_fuse    := $(wildcard /usr/include/fuse3/fuse.h)
# Tests lie as what they test: those of daemon/lease/child.cc are test/daemon/lease/child.cc. All
# C++ there is one program of unit tests. They are compiled in groups too; what only helps is not.
test_rooms  := $(addprefix test/,libinterpose policies daemon scripts)
unit_src    := $(sort $(shell find $(test_rooms) -name '*.cc'))
unit_helps  := $(if $(unit_src),$(shell grep -L ^TEST_CASE $(unit_src)))
unit_groups := $(call groups_of,$(filter-out $(unit_helps),$(unit_src)))
program_src := $(wildcard test/programs/*.cc test/programs/*.c)
fuse_bench  := test/bench/timed_disks.cc test/bench/model_disk.cc
bench_src   := $(filter-out $(if $(has_fuse),,$(fuse_bench)),$(wildcard test/bench/*.cc))
sim_src     := $(wildcard test/sim/*.cc)
crash_src   := $(wildcard test/crash/*.cc)
fuzz_src    := $(wildcard test/fuzz/*.cc)
HEADERS     ?= $(sort $(wildcard libinterpose/*.h libinterpose/*/*.h policies/*.h \
  daemon/*/*.h daemon/*/*/*.h daemon/*/*/*/*.h))

guest_obj   := $(guest_src:%=$(O)/pic/%.o)
top_src     := $(wildcard daemon/commands/cli/top/*.cc)
# Programs of one folder each, beside the command: their verb is the folder's name.
tools       := trace replay report slurm calibrate
recover     := $(O)/bin/sluice-recover $(O)/bin/sluice-order
crash_groups := $(call groups_of,$(crash_src))
sim_obj     := $(sim_src:%=$(O)/obj/%.o)
crash_obj   := $(foreach g,$(crash_groups),$(O)/obj/groups/$(call first_of,$(g)).o)
unit_obj    := $(foreach g,$(unit_groups),$(O)/obj/groups/$(call first_of,$(g)).o) \
  $(unit_helps:%=$(O)/obj/%.o) $(O)/obj/test/lib/unit_main.cc.o

lib      := $(O)/lib/libinterpose.so
bin      := $(O)/bin/sluice
top      := $(O)/bin/sluice-top
tool_bin := $(tools:%=$(O)/bin/sluice-%)
sluiced  := $(O)/bin/sluiced
unit     := $(O)/test/unit
# Where the headers of FUSE are missing it is not built, and its tests skip.
crash    := $(if $(has_fuse),$(O)/test/crash/power_cut)
# Only where Slurm's headers are; of a sanitizer nothing may come into Slurm's programs.
spank_src := $(if $(and $(wildcard /usr/include/slurm/spank.h),$(if $(SAN),,y)),\
  $(wildcard daemon/commands/slurm/*.c))
spank    := $(if $(spank_src),$(O)/lib/sluice_spank.so)
sim      := $(O)/test/simulate
programs := $(patsubst test/%,$(O)/test/%,$(basename $(program_src)))
benches  := $(patsubst test/bench/%.cc,$(O)/bench/%,$(bench_src))
fuzzers  := $(if $(shell command -v $(CLANGXX)),$(patsubst test/fuzz/%.cc,$(O)/fuzz/%,$(fuzz_src)))
exports  := $(O)/exports.map

.PHONY: all first help check check-unit check-crash check-coverage check-guests check-fuzz \
  check-source \
  bench bench-overhead bench-accuracy bench-control bench-reaction bench-quiet bench-replay \
  bench-order bench-recover bench-small soak crash-long compare \
  fuzz headers layers style exports format tidy \
  programs list-tests install uninstall clean sim spin slurm deb rpm check-packages FORCE

# What the first minutes with sluice need.
first: $(lib) $(bin)
all: first $(top) $(tool_bin) $(recover) $(sluiced) $(spank)
slurm: $(spank)

# ---- objects ----

# Rewritten only when the flags differ, so it is older than the objects when nothing changed.
$(O)/flags: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' '$(CXX) $(guest_flags) $(guest_link)' '$(plain_flags)' '$(test_flags)' \
	  '$(CC) $(program_cxx) $(program_c)' '$(CLANGXX) $(fuzz_flags)' | cmp -s - $@ || \
	  printf '%s\n' '$(CXX) $(guest_flags) $(guest_link)' '$(plain_flags)' '$(test_flags)' \
	  '$(CC) $(program_cxx) $(program_c)' '$(CLANGXX) $(fuzz_flags)' >$@

$(O)/pic/%.o: % $(O)/flags
	@mkdir -p $(@D)
	$(call say,CXX,$(CXX) $(guest_flags) $(depend) -c $< -o $@)

# A fifth of a compilation is headers of others that nearly all of ours need. Those are compiled
# once, for time alone: each header of ours still says what it needs (scripts/check-headers).
often := algorithm array atomic charconv chrono functional map memory mutex optional set span \
  string string_view thread unordered_map utility variant vector fmt/format.h nlohmann/json.hpp
define often_rule
$(O)/obj/$(1).h.gch: $(O)/flags
	@mkdir -p $$(@D) && printf '#include <%s>\n' $$(often) $(3) >$$(@:.gch=)
	$$(call say,HEADER,$$(CXX) $$($(2)) $$(depend:-MMD=-MD) -x c++-header $$(@:.gch=) -o $$@)
endef
$(eval $(call often_rule,plain,plain_flags))
$(eval $(call often_rule,test,test_flags,catch2/catch.hpp))
with_often = -include $(O)/obj/$(1).h

# A group is written anew only when something else is in it: FILE, and the command that prints it.
define group_rule
$(1): FORCE
	@mkdir -p $$(@D) && $(2) >$$@.new
	@if cmp -s $$@.new $$@; then rm $$@.new; else mv $$@.new $$@; fi
endef
including   = printf '\#include "%s"\n' $(subst $(comma), ,$(1))
group_file  = $(O)/groups/$(call first_of,$(1))
$(foreach room,$(rooms),$(foreach g,$(call groups_of,$(call sources_of,$(room))),\
  $(eval $(call group_rule,$(call group_file,$(g)),$(call including,$(g))))))
$(foreach g,$(crash_groups),\
  $(eval $(call group_rule,$(call group_file,$(g)),$(call including,$(g)))))
$(foreach g,$(unit_groups),\
  $(eval $(call group_rule,$(call group_file,$(g)),test/lib/unit-group $(subst $(comma), ,$(g)))))

# A whole room as one source, for the fuzzers: clang spends its time on headers alone then. Of two
# rooms only what reads a job's memory, a result, or words of a user.
whole_of = $(O)/whole/$(subst /,-,$(1)).cc
fuzzed_daemon/commands/cli := $(addprefix daemon/commands/cli/,\
  costs.cc epoch_look.cc hold_back.cc limits.cc paths.cc report.cc small_rows.cc)
fuzzed_daemon/commands/report := $(filter-out %/ask.cc,\
  $(call sources_of,daemon/commands/report))
fuzzed_in = $(or $(fuzzed_$(1)),$(call sources_of,$(1)))
$(foreach room,$(rooms),\
  $(eval $(call group_rule,$(call whole_of,$(room)),$(call including,$(call fuzzed_in,$(room))))))

$(O)/obj/groups/test/%.o: $(O)/groups/test/% $(O)/flags $(O)/obj/test.h.gch
	@mkdir -p $(@D)
	$(call say,CXX,$(CXX) $(test_flags) $(call with_often,test) $(depend) -c $< -o $@)

$(O)/obj/groups/%.o: $(O)/groups/% $(O)/flags $(O)/obj/plain.h.gch
	@mkdir -p $(@D)
	$(call say,CXX,$(CXX) $(plain_flags) $(call with_often,plain) $(depend) -c $< -o $@)

$(O)/obj/test/%.o: test/% $(O)/flags
	@mkdir -p $(@D)
	$(call say,CXX,$(CXX) $(test_flags) $(depend) -c $< -o $@)

$(O)/obj/%.o: % $(O)/flags $(O)/obj/plain.h.gch
	@mkdir -p $(@D)
	$(call say,CXX,$(CXX) $(plain_flags) $(call with_often,plain) $(depend) -c $< -o $@)

# Catch2 itself.
$(O)/obj/test/lib/unit_main.cc.o: private test_flags += -O0

$(O)/obj/groups/daemon/runtime/%: plain_flags += \
  $(if $(CHART_JS),-DCHART_JS='"$(CHART_JS)"')

$(O)/exports.map: libinterpose/exports.map.in $(O)/flags
	@mkdir -p $(@D)
	$(call say,CPP,$(CXX) -E -P -x c $(INCLUDES) $(depend) $< -o $@)

# ---- what is built from them ----

$(O)/lib/libinterpose.so: $(guest_obj) $(exports) $(layout)
	@mkdir -p $(@D)
	$(call say,LINK,$(CXX) $(guest_link) $(san_flags) -Wl$(comma)--version-script=$(exports) \
	  -o $@ $(guest_obj) $(guest_libs))

# Plain C: Slurm's programs load it, and get no libstdc++ with it.
spank_flags := -std=gnu11 -O2 -g -Wall -Wextra -fPIC
$(O)/lib/sluice_spank.so: $(spank_src) $(wildcard daemon/commands/slurm/*.h) \
  daemon/commands/slurm/exports.map Makefile
	@mkdir -p $(@D)
	$(call say,PLUGIN,$(CC) $(spank_flags) -shared -Wl$(comma)-z$(comma)now \
	  -Wl$(comma)--version-script=daemon/commands/slurm/exports.map -o $@ $(spank_src))

# The command starts in a millisecond: it carries none of the daemon's libraries, and what draws on
# a terminal is a program of its own.
# Of a library only what is used is loaded, and so with the rooms.
libs  := -Wl,--as-needed -lfmt -lzmq -lsodium -lcap -lcpp-httplib -lxxhash
define link
@mkdir -p $(@D)
$(call say,LINK,$(CXX) $(san_flags) -pthread -o $@ $(filter-out %.a,$^) \
  -Wl$(comma)--start-group $(filter %.a,$^) -Wl$(comma)--end-group $(libs) $(1))
endef

define room_rule
$(call archive_of,$(1)): $(patsubst $(O)/%,$(O)/obj/%.o,$(call group_files,$(call sources_of,$(1))))
	@mkdir -p $$(@D) && rm -f $$@
	@$(AR) rcsT $$@ $$^
endef
$(foreach room,$(rooms),$(eval $(call room_rule,$(room))))

lowest      := libinterpose/core daemon/base
of_command  := $(lowest) policies $(call in_daemon,policy segment background keepers local \
  verbs/views commands/cli commands/trace commands/report)
of_tools    := $(of_command) $(call in_daemon,lease wire runtime verbs epochs cluster \
  commands/replay commands/replay/simulate commands/slurm commands/calibrate)
of_sluiced  := $(lowest) policies $(call in_daemon,policy segment background local lease wire \
  runtime verbs/views verbs epochs node cluster sluiced)
of_journal  := $(lowest) daemon/journal

$(O)/bin/sluice: $(O)/obj/daemon/commands/cli/main.cc.o $(call archive_of,$(of_command))
	$(link)

$(O)/bin/sluice-top: $(top_src:%=$(O)/obj/%.o) $(call archive_of,$(of_command))
	$(call link,-lncursesw -ltinfo)

$(tool_bin): $(O)/bin/sluice-%: $(O)/obj/daemon/commands/%/main.cc.o $(call archive_of,$(of_tools))
	$(link)

$(O)/bin/sluice-recover: $(O)/obj/daemon/journal/recover_main.cc.o $(call archive_of,$(of_journal))
	$(link)

$(O)/bin/sluice-order: $(O)/obj/daemon/journal/serve_main.cc.o $(call archive_of,$(of_journal))
	$(link)

$(O)/bin/sluiced: $(O)/obj/daemon/sluiced/main.cc.o $(call archive_of,$(of_sluiced))
	$(call link,$(if $(SAN),,-Wl$(comma)--no-as-needed -ljemalloc))

$(O)/test/unit: $(unit_obj) $(call archive_of,$(rooms)) | $(lib)
	$(link)

$(O)/test/simulate: $(sim_obj) $(call archive_of,$(rooms))
	$(link)

$(O)/test/crash/power_cut: $(crash_obj) $(call archive_of,$(of_journal))
	$(call link,-lfuse3)

# A test program may carry `// build: FLAGS` in its first 20 lines.
own_flags = $$(sed -n '1,20s|^// build:||p' $<)

$(O)/test/%: test/%.cc $(O)/flags
	@mkdir -p $(@D)
	$(call say,PROGRAM,$(CXX) $(program_cxx) $(depend) $< -o $@ $(own_flags))

$(O)/test/%: test/%.c $(O)/flags
	@mkdir -p $(@D)
	$(call say,PROGRAM,$(CC) $(program_c) $(depend) $< -o $@ $(own_flags))

# Guests need nothing of ours, and get no library that reads a file of its own when it starts: that
# would be metered too.
$(addprefix $(O)/bench/,calls order_work rate spinner timed_disks model_disk): \
  $(O)/bench/%: test/bench/%.cc $(O)/flags
	@mkdir -p $(@D)
	$(call say,BENCH,$(CXX) $(bench_flags) $(depend) $< -o $@ $(own_flags))

$(O)/bench/%: test/bench/%.cc $(call archive_of,$(rooms)) $(O)/flags
	@mkdir -p $(@D)
	$(call say,BENCH,$(CXX) $(bench_flags) $(depend) $< -Wl$(comma)--start-group $(filter %.a,$^) \
	  -Wl$(comma)--end-group -o $@ $(libs) $(own_flags))

# What is fuzzed is compiled with the sanitizers too, into one archive: these rooms, and of the node
# the few files that read a job's memory.
of_fuzzers := $(of_command) $(call in_daemon,wire journal)
fuzz_alone := $(call in_daemon,node/census.cc node/curves.cc node/demand_meter.cc)
fuzz_obj   := $(fuzz_alone:%=$(O)/fuzzed/%.o) $(foreach room,$(of_fuzzers),\
  $(patsubst $(O)/%,$(O)/fuzzed/%.o,$(call whole_of,$(room))))
sanitized   = $(call say,CLANG,$(CLANGXX) $(fuzz_flags) -fsanitize=fuzzer-no-link $(depend) \
  -c $< -o $@)

$(O)/fuzzed/whole/%.o: $(O)/whole/% $(O)/flags
	@mkdir -p $(@D)
	$(sanitized)

$(O)/fuzzed/%.o: % $(O)/flags
	@mkdir -p $(@D)
	$(sanitized)

$(O)/fuzzed/parts.a: $(fuzz_obj)
	@mkdir -p $(@D) && rm -f $@
	$(call say,AR,ar rcs $@ $^)

$(O)/fuzz/%: test/fuzz/%.cc $(O)/fuzzed/parts.a
	@mkdir -p $(@D)
	$(call say,FUZZER,$(CLANGXX) $(fuzz_flags) -fsanitize=fuzzer $(depend) $< $(O)/fuzzed/parts.a \
	  -o $@ $(libs))

# Each header compiles alone.
$(O)/headers/%.ok: % $(O)/flags
	@mkdir -p $(@D)
	$(call say,HEADER,$(CXX) $(common) $(depend) -fsyntax-only -include $< -x c++ /dev/null \
	  && touch $@)

headers: $(HEADERS:%=$(O)/headers/%.ok)

# ---- tests ----

san_options := $(if $(SAN),TSAN_OPTIONS=suppressions=$(CURDIR)/test/tsan.supp)
run_tests = @BUILD=$(O) $(san_options) scripts/run-tests

crash_tests    := test/crash
coverage_tests := test/coverage/run
guest_tests    := test/guests
fuzz_tests     := $(fuzz_src:test/fuzz/%.cc='scripts/fuzz % 1')
source_tests   := scripts/check-style scripts/check-links scripts/check-layers \
  scripts/check-format scripts/check-headers scripts/check-lint scripts/check-exports

# A sanitized library cannot be preloaded into ordinary programs, so a variant runs the unit tests.
ifeq ($(SAN),)
all_tests := $(source_tests) $(unit) $(test_rooms) $(crash_tests) $(coverage_tests) $(guest_tests) \
  $(fuzz_tests)
all_built := all $(unit) $(sim) $(crash) $(programs) $(benches) $(fuzzers)
else
all_tests := $(unit)
all_built := all $(unit)
endif

programs: all $(programs)

check: $(all_built)
	$(run_tests) $(all_tests)
list-tests: $(unit)
	$(run_tests) --list $(all_tests)
check-unit: $(unit)
	$(run_tests) $(unit)
check-crash: all $(crash)
	$(run_tests) $(crash_tests)
check-coverage: programs
	$(run_tests) $(coverage_tests)
check-guests: programs
	$(run_tests) $(guest_tests)
check-fuzz: $(fuzzers)
	$(run_tests) $(fuzz_tests)
check-source: all
	$(run_tests) $(source_tests)

# Every folder of tests has its own, by the last part of its name: check-libinterpose, check-node.
check-%: programs $(unit) $(sim) $(benches)
	$(if $(call folders_of,$*),,$(error there is no folder $* of tests))
	$(run_tests) $(call folders_of,$*)
folders_of = $(shell find $(test_rooms) -type d -name $(1))

layers:
	@scripts/check-layers
style:
	@scripts/check-style
exports: all
	@scripts/check-exports
tidy:
	@scripts/check-lint
format:
	@scripts/check-format --fix

fuzz: $(fuzzers)
	@for f in $(notdir $(fuzzers)); do scripts/fuzz $$f $(SECONDS) || exit 1; done

HOURS ?= 1
SEED  ?= $(shell date +%s)
STATES ?= 100000
CRASH_SEED ?= 1
sim: $(sim)
	$(sim) lease --hours $(HOURS) --seed $(SEED)
spin:
	@FULL=$(FULL) test/spin/run

# Every kind of power cut, hours of them; goes on where it was ended.
crash-long: all $(crash)
	@BUILD=$(O) python3 test/crash/long.py $(STATES) $(CRASH_SEED)

# Packages are built from an exported copy of the tree, in build/packages. check-packages takes
# minutes, root and the network, so it is not part of `make check`.
package_tests := $(sort $(wildcard test/packages/*.sh))
deb rpm:
	@scripts/packaging/build $@
check-packages: all
	$(run_tests) $(package_tests)

# ---- measurements ----

bench_env = @BUILD=$(O) SLUICE=$(abspath $(O))/bin/sluice \
  SLUICE_LIB=$(abspath $(O))/lib/libinterpose.so PROGRAMS=$(abspath $(O))/test/programs

bench: bench-overhead bench-accuracy bench-control bench-reaction bench-quiet bench-replay

bench-overhead: programs $(benches)
	$(bench_env) test/bench/overhead.py
bench-accuracy: programs $(benches)
	$(bench_env) test/bench/accuracy.py

# The tables and the drawing of policies/README.md, from simulated time: the same on any machine.
compare: $(sim)
	$(sim) compare --readme policies/README.md --svg policies/compare.svg

bench-control: all $(benches)
	$(bench_env) test/bench/control.py
	@$(O)/bench/allocate
bench-reaction: all $(benches)
	$(bench_env) test/bench/reaction.py
bench-quiet: all $(O)/bench/spinner
	$(bench_env) test/bench/quiet.py
bench-order: all $(benches)
	$(bench_env) test/bench/order.py
bench-recover: all $(O)/bench/order_full_log
	$(bench_env) test/bench/recover.py

bench-small: all $(O)/bench/pieces
	$(bench_env) test/bench/small.py

bench-replay: all
	$(bench_env) test/bench/replay.py

soak: all $(benches)
	$(bench_env) test/daemon/cluster/soak.py --minutes $(MINUTES)

# ---- installation ----

bindir  = $(DESTDIR)$(PREFIX)/bin
sbindir = $(DESTDIR)$(PREFIX)/sbin
UNITDIR ?= $(PREFIX)/lib/systemd/system
unitdir = $(DESTDIR)$(UNITDIR)
libdir  = $(DESTDIR)$(PREFIX)/lib/sluice
incdir  = $(DESTDIR)$(PREFIX)/include
docdir  = $(DESTDIR)$(PREFIX)/share/doc/sluice
mandir  = $(DESTDIR)$(PREFIX)/share/man
compdir = $(DESTDIR)$(PREFIX)/share/bash-completion/completions
man1   := $(wildcard daemon/commands/cli/*.1 $(tools:%=daemon/commands/%/*.1) daemon/journal/*.1)
man5   := $(wildcard daemon/sluiced/*.5)
man8   := $(wildcard daemon/sluiced/*.8 daemon/journal/*.8)
units  := $(wildcard daemon/systemd/*.service daemon/systemd/*.mount)
sample := $(wildcard policies/examples/* daemon/systemd/*.json daemon/systemd/*.conf \
  daemon/monitoring/*)

# Packages set STRIP= and keep the symbols in packages of their own.
STRIP ?= -s

install: all
	install $(STRIP) -D -m 755 $(O)/bin/sluice $(bindir)/sluice
	install $(STRIP) -D -m 755 $(O)/bin/sluiced $(sbindir)/sluiced
	install $(STRIP) -D -m 755 $(O)/lib/libinterpose.so $(libdir)/libinterpose.so
	install -D -m 644 -t $(incdir) libinterpose/sluice_order.h libinterpose/sluice_role.h
	install $(STRIP) -D -m 755 -t $(libdir) $(top) $(tool_bin) $(recover) $(spank)
	install -D -m 644 -t $(libdir) daemon/commands/trace/sluice-trace-darshan.py
	install -D -m 644 -t $(docdir)/traces $(wildcard traces/*)
	install -D -m 644 -t $(docdir) README.md LICENSE
	install -D -m 644 -t $(mandir)/man1 $(man1)
	install -D -m 644 -t $(mandir)/man5 $(man5)
	install -D -m 644 -t $(mandir)/man8 $(man8)
	install -D -m 644 daemon/systemd/sluice.sysusers $(DESTDIR)$(PREFIX)/lib/sysusers.d/sluice.conf
	mkdir -p $(unitdir)
	for unit in $(units); do \
	  sed 's#@sbindir@#$(PREFIX)/sbin#; s#@libdir@#$(PREFIX)/lib/sluice#' \
	  $$unit >$(unitdir)/$${unit##*/} || exit 1; done
	install -D -m 644 -t $(docdir)/examples $(sample)
	install -D -m 644 daemon/commands/cli/sluice.bash $(compdir)/sluice

uninstall:
	rm -f $(bindir)/sluice $(sbindir)/sluiced $(compdir)/sluice $(incdir)/sluice_order.h \
	  $(incdir)/sluice_role.h \
	  $(addprefix $(mandir)/man1/,$(notdir $(man1))) \
	  $(addprefix $(mandir)/man5/,$(notdir $(man5))) \
	  $(addprefix $(mandir)/man8/,$(notdir $(man8))) $(addprefix $(unitdir)/,$(notdir $(units))) \
	  $(DESTDIR)$(PREFIX)/lib/sysusers.d/sluice.conf
	rm -rf $(libdir) $(docdir)

clean:
	rm -rf build

help:
	@printf '%s\n' \
	  'make                  all programs (build/bin/) and build/lib/libinterpose.so' \
	  'make first            the library and the command alone' \
	  'make check            every test; the last line is the result' \
	  'make check-KIND       unit crash coverage guests fuzz source' \
	  'make check-FOLDER     the tests of a folder: check-libinterpose, check-node, check-cli' \
	  'make list-tests       the names of all tests' \
	  'make bench            bench-overhead, -accuracy, -control, -reaction, -quiet, -replay' \
	  'make bench-order      durable fsync beside the kernel'\''s (root, FUSE)' \
	  'make bench-small      what hints and write-behind bring small writes' \
	  'make bench-recover    how long a full log of 1 GiB takes to be recovered (root)' \
	  'make slurm            the plugin alone, against the headers of Slurm' \
	  'make crash-long STATES=100000   power cuts of all kinds; goes on where it was ended' \
	  'make soak MINUTES=30  jobs come and go while daemons are restarted' \
	  'make compare          the allocation algorithms side by side, into policies/' \
	  'make sim HOURS=N SEED=S   the lease protocol under faults, simulated for N hours (1)' \
	  'make spin FULL=1      the model of the lease protocol, large instances too' \
	  'make fuzz SECONDS=N   each fuzzer for N seconds (600)' \
	  'make format tidy      clang-format in place; cppcheck' \
	  'make layers style exports headers   single checks of the source' \
	  'make install uninstall DESTDIR= PREFIX=/usr/local   stripped; STRIP= keeps symbols' \
	  'make deb rpm          packages, into build/packages/ (scripts/deps --install packages)' \
	  'make check-packages   install, upgrade, remove, purge in a chroot (minutes)' \
	  'make clean            removes build/' \
	  'V=1 shows commands; SAN=address,undefined or SAN=thread builds a variant (its check: unit)'

-include $(shell find $(O) -path $(O)/packages -prune -o -type f -name '*.d' -print 2>/dev/null)
