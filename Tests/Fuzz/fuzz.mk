# make fuzz: the protocol codec, the reader of damaged databases and the bridge to Lua under libFuzzer (FUZZ_SECONDS each). Included by
# the Makefile.
FUZZ_SECONDS ?= 300

# libFuzzer's inputs under AddressSanitizer, FUZZ_SECONDS for each of the parsers of the protocol and for the reader of damaged files.
FUZZ_RUN = SWIFT_BACKTRACE=enable=no .build/fuzz/$$name -max_total_time=$(FUZZ_SECONDS) \
  -artifact_prefix=.build/fuzz/$$name- -verbosity=0 -print_final_stats=1
FUZZ_BUILD = swiftc -O -parse-as-library -swift-version 6 -package-name larder -sanitize=fuzzer,address -use-ld=lld

.PHONY: fuzz
fuzz: deps
	@for name in Request Reply; do \
	  mkdir -p .build/fuzz/$$name.corpus && \
	  $(FUZZ_BUILD) Sources/Shared/LarderRESP/*.swift Tests/Fuzz/$${name}Fuzz.swift -o .build/fuzz/$$name && \
	  $(FUZZ_RUN) -max_len=4096 -dict=Tests/Fuzz/resp.dict .build/fuzz/$$name.corpus || exit 1; \
	done
	@name=Salvage; mkdir -p .build/fuzz/$$name.corpus && \
	  clang -c -O2 -ISources/System/CLarderCRC32C/include Sources/System/CLarderCRC32C/crc32c.c -o .build/fuzz/crc32c.o && \
	  echo 'module CLarderCRC32C { header "$(CURDIR)/Sources/System/CLarderCRC32C/include/ccrc32c.h" }' >.build/fuzz/module.modulemap && \
	  swiftc -O -parse-as-library -swift-version 6 -package-name larder -module-name LarderPlatform -wmo -c \
	    -emit-module-path .build/fuzz/LarderPlatform.swiftmodule $$(find Sources/Shared/LarderPlatform -name '*.swift') -o .build/fuzz/platform.o && \
	  swiftc -O -parse-as-library -swift-version 6 -package-name larder -module-name LarderLevelDBFormat -wmo -c -I.build/fuzz \
	    -emit-module-path .build/fuzz/LarderLevelDBFormat.swiftmodule Sources/Engine/LarderLevelDBFormat/*.swift -o .build/fuzz/format.o && \
	  $(FUZZ_BUILD) -I.build/fuzz -ISources/System/CLarderSnappy $$(find Sources/Engine/LarderLevelDBSalvage -name '*.swift') Tests/Fuzz/SalvageFuzz.swift \
	    .build/fuzz/crc32c.o .build/fuzz/platform.o .build/fuzz/format.o -o .build/fuzz/$$name && \
	  n=0; for file in $$(find Tests/LarderEngineTests/Golden -name '*.ldb' -o -name '00*.log' -o -name 'MANIFEST-*'); do \
	    case $$file in *.log) kinds='0 20 60';; *.ldb) kinds='2';; *) kinds='1 21';; esac; \
	    for kind in $$kinds; do n=$$((n + 1)); \
	      { printf "\\$$kind"; cat $$file; } >.build/fuzz/$$name.corpus/seed-$$n; done; done; \
	  $(FUZZ_RUN) -max_len=16384 .build/fuzz/$$name.corpus
	@name=Script; mkdir -p .build/fuzz/$$name.corpus && \
	  python3 Tests/Fuzz/script_seeds.py .build/fuzz/$$name.corpus && \
	  clang -O1 -g -fsanitize=fuzzer,address,undefined -fuse-ld=lld -ISources/System/CLarderLuaBridge/include \
	    $$(pkg-config --cflags lua5.1) Sources/System/CLarderLuaBridge/*.c Tests/Fuzz/ScriptFuzz.c -o .build/fuzz/$$name \
	    $$(pkg-config --libs lua5.1) -llua5.1-cjson -llua5.1-bitop -lm && \
	  $(FUZZ_RUN) -max_len=2048 .build/fuzz/$$name.corpus
