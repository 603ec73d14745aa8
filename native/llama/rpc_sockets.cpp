#include "llama/rpc_sockets.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

namespace fermata {

namespace {

constexpr int kConnectSeconds = 5;
// Probes of a silent connection: a machine without power is noticed after half a minute.
constexpr int kProbeIdleSeconds = 15;
constexpr int kProbeSeconds = 5;
constexpr int kProbes = 3;

std::atomic<int> timeout_seconds{0};

// Connections to servers, by descriptor. What a server of this process has accepted is not here.
std::mutex peers_mutex;
std::map<int, std::string> peers;

void set(int socket, int level, int option, int value) {
    ::setsockopt(socket, level, option, &value, sizeof(value));
}

void watch(int socket) {
    set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
#ifdef TCP_KEEPIDLE
    set(socket, IPPROTO_TCP, TCP_KEEPIDLE, kProbeIdleSeconds);
    set(socket, IPPROTO_TCP, TCP_KEEPINTVL, kProbeSeconds);
    set(socket, IPPROTO_TCP, TCP_KEEPCNT, kProbes);
#endif
    timeval limit{};
    limit.tv_sec = timeout_seconds.load();
    ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
}

std::string endpoint_of(const sockaddr* address) {
    if (address->sa_family != AF_INET) return "(no IPv4 address)";
    const auto* ipv4 = reinterpret_cast<const sockaddr_in*>(address);
    char text[INET_ADDRSTRLEN] = {};
    ::inet_ntop(AF_INET, &ipv4->sin_addr, text, sizeof(text));
    return std::string(text) + ":" + std::to_string(ntohs(ipv4->sin_port));
}

// 0, or -1 and errno.
int connect_in_time(int socket, const sockaddr* address, socklen_t length, int seconds) {
    const int flags = ::fcntl(socket, F_GETFL, 0);
    ::fcntl(socket, F_SETFL, flags | O_NONBLOCK);
    int result = ::connect(socket, address, length);
    if (result != 0 && errno == EINPROGRESS) {
        pollfd waiting{socket, POLLOUT, 0};
        int ready = -1;
        do
            ready = ::poll(&waiting, 1, seconds * 1000);
        while (ready < 0 && errno == EINTR);
        int error = ETIMEDOUT;
        socklen_t size = sizeof(error);
        if (ready > 0) ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size);
        errno = error;
        result = error == 0 ? 0 : -1;
    }
    const int error = errno;
    ::fcntl(socket, F_SETFL, flags);
    errno = error;
    return result;
}

std::string peer_of(int socket) {
    const std::lock_guard lock(peers_mutex);
    const auto found = peers.find(socket);
    return found == peers.end() ? std::string() : found->second;
}

// A client's connection cannot go on. Does nothing for those of a server.
void end_if_lost(int socket, bool closed, int error) {
    const std::string peer = peer_of(socket);
    if (peer.empty()) return;
    std::string what = "closed the connection";
    if (!closed && (error == EAGAIN || error == EWOULDBLOCK))
        what = "has not answered for " + std::to_string(timeout_seconds.load()) + " seconds";
    else if (!closed && error != ECONNRESET && error != EPIPE)
        what = std::string("cannot be reached any more: ") + std::strerror(error);
    std::fprintf(stderr,
                 "fermata: the RPC server %s %s. Layers of the model are there, so this process "
                 "ends.\n",
                 peer.c_str(), what.c_str());
    std::fflush(stderr);
    std::_Exit(kPeerLostExit);
}

}  // namespace

void set_rpc_timeout(int seconds) {
    timeout_seconds.store(seconds);
}

std::pair<int, std::string> connect_within(const std::string& host, int port, int seconds) {
    addrinfo hints{};
    hints.ai_family = AF_INET;  // ggml-rpc has no other
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    const int fault = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
    if (fault != 0) return {-1, std::string("no IPv4 address: ") + ::gai_strerror(fault)};
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int error = socket < 0 ? errno : 0;
    if (socket >= 0 && connect_in_time(socket, found->ai_addr, found->ai_addrlen, seconds) != 0)
        error = errno;
    ::freeaddrinfo(found);
    if (error == 0) return {socket, ""};
    if (socket >= 0) ::close(socket);
    return {-1, std::strerror(error)};
}

}  // namespace fermata

// What ggml-rpc calls in place of the system's functions of these names.

extern "C" int fermata_rpc_connect(int socket, const sockaddr* address, socklen_t length) {
    const int result = fermata::connect_in_time(socket, address, length, fermata::kConnectSeconds);
    if (result == 0) {
        fermata::watch(socket);
        const std::lock_guard lock(fermata::peers_mutex);
        fermata::peers[socket] = fermata::endpoint_of(address);
    }
    return result;
}

extern "C" ssize_t fermata_rpc_send(int socket, const void* data, std::size_t size, int flags) {
#ifdef MSG_NOSIGNAL
    flags |= MSG_NOSIGNAL;
#endif
    while (true) {
        const ssize_t sent = ::send(socket, data, size, flags);
        if (sent >= 0) return sent;
        if (errno == EINTR) continue;
        fermata::end_if_lost(socket, false, errno);
        return sent;
    }
}

extern "C" ssize_t fermata_rpc_recv(int socket, void* data, std::size_t size, int flags) {
    while (true) {
        const ssize_t received = ::recv(socket, data, size, flags);
        if (received > 0 || (received == 0 && size == 0)) return received;
        if (received < 0 && errno == EINTR) continue;
        fermata::end_if_lost(socket, received == 0, errno);
        return received;
    }
}
