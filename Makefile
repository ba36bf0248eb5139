# SPDX-License-Identifier: MIT
# labelprof: make [all demo check bench install clean]. V=1 shows the commands. Output: build/ only.

PREFIX  ?= /usr/local
DESTDIR ?=
VERSION := 0.1.0
B       := build

CC      ?= gcc
Q       := $(if $(V),,@)
say      = $(if $(V),,@printf '  %-7s %s\n' $(1) $(2))

WARN    := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla
COMMON  := -std=gnu11 -O2 -g -D_GNU_SOURCE -DLABELPROF_VERSION='"$(VERSION)"' $(WARN) \
           -I. -Ipreload -I$(B)/gen -MMD -MP
# The library runs inside malloc of a stranger: hidden symbols, TLS that needs no allocation, no
# canaries (a thread without libc's TLS must do), no call folded into another allocator call.
LIB_CFLAGS := $(COMMON) -fPIC -fvisibility=hidden -ftls-model=initial-exec -fno-stack-protector \
              -fno-semantic-interposition -fno-builtin-malloc -fno-builtin-calloc \
              -fno-builtin-realloc -fno-builtin-free
CLI_CFLAGS := $(COMMON) -fPIE
# zlib and protobuf-c go in as hidden copies (their archives are position-independent): a NEEDED
# entry would put them before the program's own in symbol look-up.
LIB_LDFLAGS := -shared -Wl,--version-script=exports.map -Wl,-z,defs,-z,now,-z,relro,-z,noexecstack \
               -Wl,--gc-sections -Wl,-soname,liblabelprof.so
LIB_LIBS   := -l:libprotobuf-c.a -l:libz.a
CLI_LIBS   := -lprotobuf-c -lz -ljemalloc -lstdc++

LIB_SRC := $(wildcard preload/*.c preload/*/*.c)
READER_SRC := $(wildcard encoder/reader*.c)
ENC_SRC := $(filter-out $(READER_SRC),$(wildcard encoder/*.c))
CLI_SRC := $(wildcard cli/*.c) $(READER_SRC)
# What the options, the rules and the encoder stand on.
CLI_BASE := $(patsubst %,preload/%.c,base/options base/label_text base/signal_names base/text base/sys labels/rule_file \
            labels/rule_match)
GEN_SRC := $(patsubst encoder/%.proto,$(B)/gen/encoder/%.pb-c.c,$(wildcard encoder/*.proto))

LIB_OBJ := $(patsubst %.c,$(B)/lib/%.o,$(LIB_SRC) $(ENC_SRC)) \
           $(patsubst $(B)/gen/%.c,$(B)/lib/gen/%.o,$(GEN_SRC))
CLI_OBJ := $(patsubst %.c,$(B)/cli/%.o,$(CLI_SRC) $(ENC_SRC) $(CLI_BASE)) \
           $(patsubst $(B)/gen/%.c,$(B)/cli/gen/%.o,$(GEN_SRC))

.PHONY: all demo check bench install uninstall clean deps unit programs
.DELETE_ON_ERROR:
.SECONDARY:

all: $(B)/liblabelprof.so $(B)/labelprof

$(B)/liblabelprof.so: $(LIB_OBJ) exports.map
	$(call say,LINK,$@)
	$(Q)$(CC) $(LIB_LDFLAGS) -o $@ $(LIB_OBJ) $(LIB_LIBS)

$(B)/labelprof: $(CLI_OBJ)
	$(call say,LINK,$@)
	$(Q)$(CC) -pie -o $@ $(CLI_OBJ) $(CLI_LIBS)

$(B)/gen/encoder/%.pb-c.c $(B)/gen/encoder/%.pb-c.h: encoder/%.proto
	$(call say,PROTOC,$<)
	$(Q)mkdir -p $(B)/gen && protoc-c --c_out=$(B)/gen $<

# The slow doors read the caller's registers from their own frame (interpose/slow.h).
$(B)/lib/preload/interpose/slow.o: EXTRA := -fno-omit-frame-pointer

$(B)/lib/gen/%.o: $(B)/gen/%.c
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D) && $(CC) $(filter-out $(WARN),$(LIB_CFLAGS)) -c -o $@ $<
$(B)/lib/%.o: %.c | $(GEN_SRC)
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D) && $(CC) $(LIB_CFLAGS) $(EXTRA) -c -o $@ $<
$(B)/cli/gen/%.o: $(B)/gen/%.c
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D) && $(CC) $(filter-out $(WARN),$(CLI_CFLAGS)) -c -o $@ $<
$(B)/cli/%.o: %.c | $(GEN_SRC)
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D) && $(CC) $(CLI_CFLAGS) -c -o $@ $<

include test/test.mk
include bench/bench.mk

deps:
	$(Q)scripts/install-deps

demo: deps
	$(Q)$(MAKE) --no-print-directory all
	$(Q)scripts/demo

check: deps
	$(Q)$(MAKE) --no-print-directory all unit programs
	$(Q)test/run

install: all
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib $(DESTDIR)$(PREFIX)/include \
	           $(DESTDIR)$(PREFIX)/share/man/man1 $(DESTDIR)$(PREFIX)/share/labelprof/rules
	install -m 755 $(B)/labelprof $(DESTDIR)$(PREFIX)/bin/
	install -m 755 $(B)/liblabelprof.so $(DESTDIR)$(PREFIX)/lib/
	install -m 644 include/labelprof.h $(DESTDIR)$(PREFIX)/include/
	install -m 644 docs/labelprof.1 $(DESTDIR)$(PREFIX)/share/man/man1/
	install -m 644 rules/*.rules $(DESTDIR)$(PREFIX)/share/labelprof/rules/

uninstall:
	rm -f $(DESTDIR)$(PREFIX)/bin/labelprof $(DESTDIR)$(PREFIX)/lib/liblabelprof.so \
	      $(DESTDIR)$(PREFIX)/include/labelprof.h $(DESTDIR)$(PREFIX)/share/man/man1/labelprof.1
	rm -rf $(DESTDIR)$(PREFIX)/share/labelprof

clean:
	rm -rf $(B)

-include $(shell find $(B) -name '*.d' 2>/dev/null)
