// This target consists only of the header. The tests compile preload.c into a separate library.
#include "faults.h"

_Static_assert(sizeof(lf_record) % 8 == 0, "records of the trace are aligned");
