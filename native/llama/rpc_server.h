// llama.cpp's RPC server: other machines put layers of a model on this one's devices. The protocol
// has no keys and trusts its peers with this process's memory.
#pragma once

#include <cstdint>
#include <string>

#include "core/result.h"

namespace fermata {

struct RpcServerOptions {
    std::string host = "127.0.0.1";  // an IPv4 address
    std::int32_t port = 50052;
    std::int32_t threads = 1;
    std::uint64_t memory_limit = 0;  // bytes of what clients may have on the processor
};

// Serves one client at a time, those of before first. Returns only if it cannot.
Error run_rpc_server(const RpcServerOptions& options);

}  // namespace fermata
