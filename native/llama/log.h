// What llama.cpp has to say: kept off stdout and stderr, given to one sink, and quoted in errors.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace fermata {

enum class LogLevel : std::uint8_t { kDebug, kInfo, kWarning, kError };

// Called from any thread, one call at a time, a line without its newline.
using LogSink = std::function<void(LogLevel, std::string_view)>;

// Replaces the sink; an empty one, which is how it starts, drops everything.
void set_log_sink(LogSink sink);

// Writes to stderr; for debug runs.
LogSink stderr_log_sink();

// Initializes llama.cpp and routes its log, once in a process. Every entry to this folder calls it.
void initialize_llama();

// Collects the error lines that llama.cpp logs on this thread while it lives. Captures nest: the
// innermost one collects.
class LogCapture {
   public:
    LogCapture();
    ~LogCapture();
    LogCapture(const LogCapture&) = delete;
    LogCapture& operator=(const LogCapture&) = delete;

    // The error lines joined by "; ", or `fallback` when there were none.
    std::string errors_or(std::string_view fallback) const;

   private:
    friend void route_llama_log(LogLevel level, std::string_view line);
    std::string errors_;
    LogCapture* outer_;
};

}  // namespace fermata
