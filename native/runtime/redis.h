// A connection to Redis or Valkey, for one thread, that waits a few seconds at most: the commands
// that RemoteFiles needs, in RESP2. After a failure the object is of no use any more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fermata {

struct RedisAddress {
    std::string host;
    std::int32_t port = 6379;
    std::string user, password;  // empty: none
    std::int32_t database = 0;
};

class Redis {
   public:
    struct Reply {
        bool is_null = false;
        bool is_error = false;
        std::string text;  // of an error and of a string
        std::int64_t number = 0;
        std::vector<Reply> items;
    };

    // Null: it cannot be reached or refuses; `why` says what.
    static std::unique_ptr<Redis> connect(const RedisAddress& address, std::string& why);
    ~Redis();
    Redis(const Redis&) = delete;
    Redis& operator=(const Redis&) = delete;

    // false: the connection is lost or makes no sense. An error reply is an answer.
    bool call(std::initializer_list<std::string_view> words, Reply& reply);
    // `last`, in pieces, is the last word.
    bool call(std::initializer_list<std::string_view> words,
              std::span<const std::span<const std::byte>> last, Reply& reply);
    // The answer's bytes go into `into`. `reply.is_null`: there is no such key, or it has another
    // size.
    bool get(std::initializer_list<std::string_view> words,
             std::span<const std::span<std::byte>> into, Reply& reply);
    const std::string& why() const { return why_; }

   private:
    explicit Redis(int socket) : socket_(socket) {}

    bool ask(std::initializer_list<std::string_view> words);
    bool send(const void* data, std::size_t size);
    bool receive(void* data, std::size_t size);
    bool line(std::string& text);
    bool answer(Reply& reply, int depth);
    bool lost(const std::string& what);

    int socket_;
    std::string why_;
    std::vector<char> buffer_;  // received and not read
    std::size_t read_ = 0;
};

}  // namespace fermata
