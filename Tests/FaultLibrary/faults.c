// The header is all there is to this target: preload.c is compiled by the tests, into a library of its own.
#include "faults.h"

_Static_assert(sizeof(lf_record) % 8 == 0, "records of the trace are aligned");
