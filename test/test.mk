# SPDX-License-Identifier: MIT
# Unit tests: every stage but the doors, built with ASan+UBSan and again with TSan.
# Programs: small victims, one behaviour each, for the end-to-end tests on the shipped library.

UNIT_SRC := $(filter-out preload/interpose/% preload/session.c,$(LIB_SRC)) $(ENC_SRC) $(READER_SRC)
UNIT_CFLAGS := -std=gnu11 -O1 -g -D_GNU_SOURCE -DLABELPROF_VERSION='"$(VERSION)"' $(WARN) \
               -I. -Ipreload -I$(B)/gen -MMD -MP -fno-omit-frame-pointer
SAN_asan := -fsanitize=address,undefined -fno-sanitize-recover=undefined
SAN_tsan := -fsanitize=thread

UNIT_TESTS := $(patsubst test/unit/%.c,%,$(wildcard test/unit/test_*.c))

define sanitizer_build
UNIT_OBJ_$(1) := $$(patsubst %.c,$$(B)/$(1)/%.o,$$(UNIT_SRC)) \
                 $$(patsubst $$(B)/gen/%.c,$$(B)/$(1)/gen/%.o,$$(GEN_SRC))
$$(B)/$(1)/gen/%.o: $$(B)/gen/%.c
	$$(call say,CC-$(1),$$<)
	$$(Q)mkdir -p $$(@D) && $$(CC) $$(filter-out $$(WARN),$$(UNIT_CFLAGS)) $$(SAN_$(1)) -c -o $$@ $$<
$$(B)/$(1)/%.o: %.c | $$(GEN_SRC)
	$$(call say,CC-$(1),$$<)
	$$(Q)mkdir -p $$(@D) && $$(CC) $$(UNIT_CFLAGS) $$(SAN_$(1)) -c -o $$@ $$<
$$(B)/$(1)/libunit.a: $$(UNIT_OBJ_$(1))
	$$(call say,AR,$$@)
	$$(Q)rm -f $$@ && ar rcs $$@ $$^
$$(B)/$(1)/test_%: $$(B)/$(1)/test/unit/test_%.o $$(B)/$(1)/libunit.a
	$$(call say,LINK,$$@)
	$$(Q)$$(CC) $$(SAN_$(1)) -o $$@ $$^ -lcmocka -lprotobuf-c -lz -lm -ldl -lpthread
UNIT_BINARIES += $$(patsubst %,$$(B)/$(1)/%,$$(UNIT_TESTS))
endef
$(eval $(call sanitizer_build,asan))
$(eval $(call sanitizer_build,tsan))

unit: $(UNIT_BINARIES)

PROGRAMS := $(patsubst test/programs/%.c,$(B)/programs/%,$(wildcard test/programs/*.c)) \
            $(patsubst test/programs/%.cc,$(B)/programs/%,$(wildcard test/programs/*.cc))
PROGRAM_FLAGS := -O1 -g -fno-builtin -fno-omit-frame-pointer -D_GNU_SOURCE -Iinclude -pthread \
                 -Wall -Wextra -MMD -MP
# What a victim is linked with besides libc.
PROGRAM_LIBS_mallocx_cases  := -ljemalloc
PROGRAM_LIBS_static_program := -static
PROGRAM_FLAGS_writer_otel_desc := -mtls-dialect=gnu2
PROGRAM_FLAGS_writer_otel_static := -ftls-model=initial-exec

$(B)/programs/%.so: test/programs/%.so.c
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(PROGRAM_FLAGS) $(PROGRAM_FLAGS_$*) -fPIC -shared -o $@ $<
$(B)/programs/%.so: test/programs/%.so.cc
	$(call say,CXX,$@)
	$(Q)mkdir -p $(@D) && $(CXX) $(PROGRAM_FLAGS) -fPIC -shared -o $@ $<
$(B)/programs/%: test/programs/%.c include/labelprof.h
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(PROGRAM_FLAGS) -rdynamic -o $@ $< $(PROGRAM_LIBS_$*) -ldl -lm
$(B)/programs/%: test/programs/%.cc include/labelprof.h
	$(call say,CXX,$@)
	$(Q)mkdir -p $(@D) && $(CXX) $(PROGRAM_FLAGS) -rdynamic -o $@ $< -ldl

programs: $(PROGRAMS)
