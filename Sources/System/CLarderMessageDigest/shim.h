// libmd as the system installs it. No logic lives here.
#ifndef LARDER_CMESSAGEDIGEST_SHIM_H
#define LARDER_CMESSAGEDIGEST_SHIM_H

#include <sys/types.h>

#include <sha1.h>

#endif
