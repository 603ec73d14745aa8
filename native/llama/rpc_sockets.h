// The sockets of llama.cpp's RPC backend, in place of its own calls (native/ggml-rpc.cmake). A peer
// that is not there, is gone or does not answer has a time limit. ggml-rpc cannot report a lost
// peer: it aborts. So a loss ends the process here, with a message that names the peer.
#pragma once

#include <string>
#include <utility>

namespace fermata {

// The exit code after a peer was lost; src/cli/supervisor knows it.
inline constexpr int kPeerLostExit = 69;

// Of one call that reads or writes, from the next connection on. 0: none.
void set_rpc_timeout(int seconds);

// A connected socket, or -1 and why.
std::pair<int, std::string> connect_within(const std::string& host, int port, int seconds);

}  // namespace fermata
