#include "runtime/redis.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

namespace fermata {

namespace {

constexpr int kConnectMs = 2000;
constexpr int kAnswerSeconds = 5;
constexpr std::size_t kReceived = std::size_t{64} << 10;
// Of what a server may say beside the values that are asked for.
constexpr std::int64_t kMostText = std::int64_t{64} << 20;
constexpr std::int64_t kMostItems = 1 << 16;
constexpr int kMostDepth = 8;

bool connect_in_time(int socket, const addrinfo& to) {
    const int flags = ::fcntl(socket, F_GETFL, 0);
    ::fcntl(socket, F_SETFL, flags | O_NONBLOCK);
    int error = 0;
    if (::connect(socket, to.ai_addr, to.ai_addrlen) != 0) error = errno;
    if (error == EINPROGRESS) {
        pollfd waiting{socket, POLLOUT, 0};
        error = ETIMEDOUT;
        socklen_t size = sizeof(error);
        if (::poll(&waiting, 1, kConnectMs) > 0)
            ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size);
    }
    ::fcntl(socket, F_SETFL, flags);
    errno = error;
    return error == 0;
}

bool as_number(std::string_view text, std::int64_t& number) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

std::unique_ptr<Redis> Redis::connect(const RedisAddress& address, std::string& why) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    const int fault =
        ::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
    if (fault != 0) {
        why = ::gai_strerror(fault);
        return nullptr;
    }
    int connected = -1;
    for (const addrinfo* to = found; to != nullptr && connected < 0; to = to->ai_next) {
        const int socket = ::socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (socket >= 0 && connect_in_time(socket, *to)) {
            connected = socket;
            break;
        }
        why = std::strerror(errno);
        if (socket >= 0) ::close(socket);
    }
    ::freeaddrinfo(found);
    if (connected < 0) return nullptr;
    timeval limit{};
    limit.tv_sec = kAnswerSeconds;
    const int yes = 1;
    ::setsockopt(connected, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    ::setsockopt(connected, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    ::setsockopt(connected, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));

    std::unique_ptr<Redis> redis(new Redis(connected));
    Reply reply;
    bool works = true;
    if (!address.password.empty())
        works = address.user.empty() ? redis->call({"AUTH", address.password}, reply)
                                     : redis->call({"AUTH", address.user, address.password}, reply);
    if (works && !reply.is_error && address.database != 0)
        works = redis->call({"SELECT", std::to_string(address.database)}, reply);
    if (works && !reply.is_error) works = redis->call({"PING"}, reply);
    if (works && !reply.is_error) return redis;
    why = works ? reply.text : redis->why();
    return nullptr;
}

Redis::~Redis() {
    ::close(socket_);
}

bool Redis::call(std::initializer_list<std::string_view> words, Reply& reply) {
    reply = {};
    const std::string count = "*" + std::to_string(words.size()) + "\r\n";
    return send(count.data(), count.size()) && ask(words) && answer(reply, 0);
}

bool Redis::call(std::initializer_list<std::string_view> words,
                 std::span<const std::span<const std::byte>> last, Reply& reply) {
    reply = {};
    std::size_t bytes = 0;
    for (const auto part : last)
        bytes += part.size();
    const std::string count = "*" + std::to_string(words.size() + 1) + "\r\n";
    const std::string size = "$" + std::to_string(bytes) + "\r\n";
    if (!send(count.data(), count.size()) || !ask(words) || !send(size.data(), size.size()))
        return false;
    for (const auto part : last)
        if (!send(part.data(), part.size())) return false;
    return send("\r\n", 2) && answer(reply, 0);
}

bool Redis::get(std::initializer_list<std::string_view> words,
                std::span<const std::span<std::byte>> into, Reply& reply) {
    reply = {};
    std::size_t wanted = 0;
    for (const auto part : into)
        wanted += part.size();
    const std::string count = "*" + std::to_string(words.size()) + "\r\n";
    std::string head;
    if (!send(count.data(), count.size()) || !ask(words) || !line(head)) return false;
    std::int64_t size = 0;
    if (head.starts_with('-')) {
        reply.is_error = true;
        reply.text = head.substr(1);
        return true;
    }
    if (!head.starts_with('$') || !as_number(std::string_view(head).substr(1), size))
        return lost("what it says is no RESP");
    if (size < 0) {
        reply.is_null = true;
        return true;
    }
    if (static_cast<std::size_t>(size) != wanted)
        return lost("a value has another size than it was written with");
    for (const auto part : into)
        if (!receive(part.data(), part.size())) return false;
    char end[2];
    return receive(end, sizeof(end));
}

bool Redis::ask(std::initializer_list<std::string_view> words) {
    std::string text;
    for (const std::string_view word : words) {
        text += "$" + std::to_string(word.size()) + "\r\n";
        text += word;
        text += "\r\n";
    }
    return send(text.data(), text.size());
}

bool Redis::lost(const std::string& what) {
    if (why_.empty()) why_ = what;
    return false;
}

bool Redis::send(const void* data, std::size_t size) {
    int flags = 0;
#ifdef MSG_NOSIGNAL
    flags = MSG_NOSIGNAL;
#endif
    const auto* from = static_cast<const char*>(data);
    while (size > 0) {
        const ssize_t sent = ::send(socket_, from, size, flags);
        if (sent < 0 && errno == EINTR) continue;
        if (sent <= 0)
            return lost(errno == EAGAIN ? "it takes nothing any more" : std::strerror(errno));
        from += sent;
        size -= static_cast<std::size_t>(sent);
    }
    return true;
}

bool Redis::receive(void* data, std::size_t size) {
    auto* to = static_cast<char*>(data);
    const std::size_t known = std::min(size, buffer_.size() - read_);
    if (known > 0) std::memcpy(to, buffer_.data() + read_, known);
    read_ += known;
    to += known;
    size -= known;
    while (size > 0) {
        const ssize_t received = ::recv(socket_, to, size, 0);
        if (received < 0 && errno == EINTR) continue;
        if (received == 0) return lost("it closed the connection");
        if (received < 0)
            return lost(errno == EAGAIN ? "it does not answer" : std::strerror(errno));
        to += received;
        size -= static_cast<std::size_t>(received);
    }
    return true;
}

bool Redis::line(std::string& text) {
    text.clear();
    while (true) {
        if (read_ == buffer_.size()) {
            buffer_.resize(kReceived);
            read_ = 0;
            ssize_t received = -1;
            do
                received = ::recv(socket_, buffer_.data(), buffer_.size(), 0);
            while (received < 0 && errno == EINTR);
            buffer_.resize(received > 0 ? static_cast<std::size_t>(received) : 0);
            if (received == 0) return lost("it closed the connection");
            if (received < 0)
                return lost(errno == EAGAIN ? "it does not answer" : std::strerror(errno));
        }
        const char next = buffer_[read_++];
        if (next == '\n') {
            if (text.ends_with('\r')) text.pop_back();
            return true;
        }
        text += next;
        if (text.size() > kReceived) return lost("what it says is no RESP");
    }
}

bool Redis::answer(Reply& reply, int depth) {
    std::string head;
    if (!line(head)) return false;
    const char kind = head.empty() ? ' ' : head[0];
    const std::string_view rest = std::string_view(head).substr(head.empty() ? 0 : 1);
    if (kind == '+' || kind == '-') {
        reply.is_error = kind == '-';
        reply.text = rest;
        return true;
    }
    if (!as_number(rest, reply.number)) return lost("what it says is no RESP");
    if (kind == ':') return true;
    if (reply.number < 0) {
        reply.is_null = true;
        return true;
    }
    if (kind == '$' && reply.number <= kMostText) {
        reply.text.resize(static_cast<std::size_t>(reply.number));
        char end[2];
        return receive(reply.text.data(), reply.text.size()) && receive(end, sizeof(end));
    }
    if (kind != '*' || reply.number > kMostItems || depth == kMostDepth)
        return lost("what it says is no RESP");
    for (std::int64_t i = 0; i < reply.number; ++i) {
        reply.items.emplace_back();
        if (!answer(reply.items.back(), depth + 1)) return false;
    }
    return true;
}

}  // namespace fermata
