// Devices of other machines, through llama.cpp's RPC protocol.
#pragma once

#include <optional>
#include <string>

#include "core/result.h"

namespace fermata {

// Makes the devices of the RPC server at "HOST:PORT" known to llama.cpp, under the names RPC0, RPC1
// and so on, and stays connected as long as the process lives. Nothing if they are known. When the
// server is lost or one of its answers takes longer than `timeout_seconds`, the process ends.
// Waits some seconds at most. Errors: kInvalidArgument, kUnreachable.
std::optional<Error> add_rpc_server(const std::string& endpoint, int timeout_seconds);

}  // namespace fermata
