# SPDX-License-Identifier: MIT
# make bench: the rows of docs/performance.md; BENCH=quick for a short run.

BENCH_FLAGS := -O2 -g -fno-builtin -D_GNU_SOURCE -Iinclude -pthread -Wall -Wextra -Werror -MMD -MP
BENCH_PROGRAMS := $(patsubst %,$(B)/bench/%,loop labels label_sources many_samples spawn new unwind empty_shim.so)
BENCH_OBJ := $(filter-out $(B)/lib/preload/interpose/% $(B)/lib/preload/session.o,$(LIB_OBJ))

bench: all $(BENCH_PROGRAMS)
	$(Q)bench/run $(if $(filter quick,$(BENCH)),--quick)

$(B)/bench/empty_shim.so: bench/empty_shim.c
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(BENCH_FLAGS) -fPIC -shared -Wl,-z,now -o $@ $<
$(B)/bench/%: bench/%.cc
	$(call say,CXX,$@)
	$(Q)mkdir -p $(@D) && $(CXX) $(BENCH_FLAGS) -o $@ $<
$(B)/bench/label_sources: BENCH_FLAGS += -rdynamic
# The unwinder alone, as the library has it.
$(B)/bench/unwind: bench/unwind.c $(BENCH_OBJ)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(LIB_CFLAGS) -Wl,--gc-sections -o $@ $^ $(LIB_LIBS)
$(B)/bench/%: bench/%.c
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(BENCH_FLAGS) -o $@ $<
