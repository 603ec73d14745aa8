// A value or an error. What returns one throws nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace fermata {

enum class ErrorCode : std::uint8_t {
    kModelLoadFailed,
    kOutOfMemory,
    kNoThreads,  // the system starts no more of them
    kInvalidArgument,
    kUnreachable,      // another machine's server
    kGrammarInvalid,   // it does not compile; the message is for its author
    kGrammarTooLarge,  // it passes a limit on size, depth or work
};

// The code as JavaScript sees it, e.g. "model_load_failed".
constexpr std::string_view error_code_name(ErrorCode code) {
    switch (code) {
        case ErrorCode::kModelLoadFailed:
            return "model_load_failed";
        case ErrorCode::kOutOfMemory:
            return "out_of_memory";
        case ErrorCode::kNoThreads:
            return "no_threads";
        case ErrorCode::kInvalidArgument:
            return "invalid_argument";
        case ErrorCode::kUnreachable:
            return "unreachable";
        case ErrorCode::kGrammarInvalid:
            return "grammar_invalid";
        case ErrorCode::kGrammarTooLarge:
            return "grammar_too_large";
    }
    return "internal";
}

struct Error {
    ErrorCode code = ErrorCode::kInvalidArgument;
    std::string message;
};

// When a thread cannot be started.
inline Error no_threads() {
    return {ErrorCode::kNoThreads,
            "The system starts no more threads for this process. Raise the limit (ulimit -u, "
            "TasksMax of a systemd unit, pids of a container), or use fewer with --threads."};
}

template <class T>
class Result {
   public:
    Result(T value) : outcome_(std::move(value)) {}
    Result(Error error) : outcome_(std::move(error)) {}

    bool ok() const { return std::holds_alternative<T>(outcome_); }
    // Only when ok().
    T& value() { return std::get<T>(outcome_); }
    // Only when not ok().
    const Error& error() const { return std::get<Error>(outcome_); }

   private:
    std::variant<T, Error> outcome_;
};

}  // namespace fermata
