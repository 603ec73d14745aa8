// The one way to include napi.h.
//
// C++ exceptions are on in this folder, so that converting a request is a plain sequence of reads:
// each throws a Refusal, and guarded() turns whatever is thrown into a JavaScript error. Nothing
// else in native/ throws across its interface.
#pragma once

// An environment that is going down refuses exceptions; that must not end the process.
#define NODE_API_SWALLOW_UNTHROWABLE_EXCEPTIONS
#include <napi.h>
