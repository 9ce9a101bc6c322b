"""Writes the scripts of the conformance tests as seeds for the fuzzer into the directory that is its argument."""
import re
import sys

path = "Tests/SystemTests/Conformance/ConformanceScript+Scripting.swift"
with open(path) as file:
    text = file.read()
for number, match in enumerate(re.finditer(r'EVAL "((?:[^"\\]|\\.)*)" ', text)):
    script = match.group(1).replace('\\"', '"').replace("\\n", "\n")
    with open(f"{sys.argv[1]}/seed-{number}", "w") as file:
        file.write("a" + script)
