"""Writes the scripts and function libraries of the conformance tests as seeds for the fuzzer. Argument: the directory."""
import re
import sys

# The first byte of a seed selects its kind: see ScriptFuzz.c.
KINDS = [("Scripting", r'EVAL "((?:[^"\\]|\\.)*)" ', "a"), ("Functions", r'FUNCTION LOAD (?:REPLACE )?"((?:[^"\\]|\\.)*)"', "c")]

for name, pattern, kind in KINDS:
    with open(f"Tests/LarderSystemTests/Conformance/ConformanceScript+{name}.swift") as file:
        text = file.read()
    for number, match in enumerate(re.finditer(pattern, text)):
        script = match.group(1).replace('\\"', '"').replace("\\n", "\n")
        with open(f"{sys.argv[1]}/seed-{name}-{number}", "w") as file:
            file.write(kind + script)
