#include "llama/rpc_devices.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <mutex>
#include <set>

#include "ggml-backend.h"
#include "ggml-rpc.h"
#include "llama/log.h"
#include "llama/rpc_sockets.h"

namespace fermata {

namespace {

constexpr int kConnectSeconds = 5;
constexpr int kAnswerSeconds = 5;

// Of ggml-rpc.cpp, which keeps them to itself.
constexpr std::uint8_t kHello = 14;
constexpr std::uint8_t kDeviceCount = 15;
constexpr std::size_t kCapabilityBytes = 24;
struct HelloAnswer {
    std::uint8_t major = 0, minor = 0, patch = 0, padding = 0;
    std::array<std::uint8_t, kCapabilityBytes> capabilities = {};
};

struct Endpoint {
    std::string host;
    int port = 0;
};

std::optional<Endpoint> parsed(const std::string& text) {
    const auto colon = text.find(':');
    if (colon == std::string::npos || colon == 0 || text.size() - colon > 6) return std::nullopt;
    const std::string digits = text.substr(colon + 1);
    if (digits.empty() || digits.find_first_not_of("0123456789") != std::string::npos)
        return std::nullopt;
    const int port = std::stoi(digits);
    if (port < 1 || port > 65535) return std::nullopt;
    return Endpoint{text.substr(0, colon), port};
}

Error unreachable(const std::string& endpoint, const std::string& what) {
    return {ErrorCode::kUnreachable, "The RPC server " + endpoint + " " + what};
}

class Connection {
   public:
    explicit Connection(int socket) : socket_(socket) {
        timeval limit{};
        limit.tv_sec = kAnswerSeconds;
        ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
        ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    }
    ~Connection() { ::close(socket_); }
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    // false: there was no answer of this size.
    bool ask(std::uint8_t command, const void* input, std::uint64_t size, void* answer,
             std::uint64_t expected) {
        std::uint64_t answered = 0;
        return send(&command, 1) && send(&size, sizeof(size)) && send(input, size) &&
               receive(&answered, sizeof(answered)) && answered == expected &&
               receive(answer, expected);
    }

   private:
    bool send(const void* data, std::size_t size) {
        int flags = 0;
#ifdef MSG_NOSIGNAL
        flags = MSG_NOSIGNAL;
#endif
        return size == 0 || ::send(socket_, data, size, flags) == static_cast<ssize_t>(size);
    }
    bool receive(void* data, std::size_t size) {
        return ::recv(socket_, data, size, MSG_WAITALL) == static_cast<ssize_t>(size);
    }

    int socket_;
};

// What makes ggml-rpc abort if it finds it out by itself. nullopt: nothing.
std::optional<Error> fault_of(const std::string& endpoint, const Endpoint& at) {
    const auto [socket, why] = connect_within(at.host, at.port, kConnectSeconds);
    if (socket < 0)
        return unreachable(endpoint,
                           "cannot be reached: " + why + ". Start it there: fermata rpc-server.");
    Connection connection(socket);
    HelloAnswer hello;
    const std::array<std::uint8_t, kCapabilityBytes> no_capabilities = {};
    if (!connection.ask(kHello, no_capabilities.data(), no_capabilities.size(), &hello,
                        sizeof(hello)))
        return unreachable(
            endpoint,
            "accepts the connection and does not answer: another program uses it (it "
            "serves one at a time), it is stopped, or it is no RPC server.");
    if (hello.major != RPC_PROTO_MAJOR_VERSION || hello.minor > RPC_PROTO_MINOR_VERSION)
        return unreachable(endpoint, "has version " + std::to_string(hello.major) + "." +
                                         std::to_string(hello.minor) + " of the protocol, not " +
                                         std::to_string(RPC_PROTO_MAJOR_VERSION) + "." +
                                         std::to_string(RPC_PROTO_MINOR_VERSION) +
                                         ". Run the same version of Fermata on both machines.");
    std::uint32_t devices = 0;
    if (!connection.ask(kDeviceCount, nullptr, 0, &devices, sizeof(devices)) || devices == 0)
        return unreachable(endpoint, "has no devices.");
    return std::nullopt;
}

}  // namespace

std::optional<Error> add_rpc_server(const std::string& endpoint, int timeout_seconds) {
    initialize_llama();
    static std::mutex mutex;
    static std::set<std::string> known;
    const std::lock_guard lock(mutex);
    if (known.contains(endpoint)) return std::nullopt;
    const auto at = parsed(endpoint);
    if (!at)
        return Error{ErrorCode::kInvalidArgument,
                     "rpc: \"" + endpoint + "\" is not HOST:PORT, as 192.168.1.20:50052."};
    if (known.size() >= GGML_RPC_MAX_SERVERS)
        return Error{ErrorCode::kInvalidArgument,
                     "rpc: at most " + std::to_string(GGML_RPC_MAX_SERVERS) + " servers."};
    if (const auto fault = fault_of(endpoint, *at)) return fault;
    set_rpc_timeout(timeout_seconds);
    // Never freed: it keeps the connection, which ggml-rpc would open anew for each use.
    ggml_backend_rpc_init(endpoint.c_str(), 0);
    ggml_backend_register(ggml_backend_rpc_add_server(endpoint.c_str()));
    known.insert(endpoint);
    return std::nullopt;
}

}  // namespace fermata
