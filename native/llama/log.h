// What llama.cpp has to say: kept off stdout and stderr, and quoted in errors.
#pragma once

#include <string>
#include <string_view>

#include "ggml.h"

namespace fermata {

// Initializes llama.cpp and catches its log, once in a process. Every entry to this folder calls
// it.
void initialize_llama();

// The log of another copy of ggml, which a library may bring along, goes the same way. `set_log` is
// its ggml_log_set.
void catch_log(void (*set_log)(ggml_log_callback, void*));

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
    friend void capture_error(std::string_view line);
    std::string errors_;
    LogCapture* outer_;
};

}  // namespace fermata
