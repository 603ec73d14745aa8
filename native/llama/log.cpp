#include "llama/log.h"

#include <cstdio>
#include <mutex>

#include "llama.h"

namespace fermata {

namespace {

constexpr std::size_t kMaxCaptured = 2000;

std::mutex sink_mutex;
LogSink current_sink;
thread_local LogCapture* innermost = nullptr;
thread_local LogLevel last_level = LogLevel::kInfo;

LogLevel level_of(ggml_log_level level) {
    switch (level) {
        case GGML_LOG_LEVEL_ERROR:
            return LogLevel::kError;
        case GGML_LOG_LEVEL_WARN:
            return LogLevel::kWarning;
        case GGML_LOG_LEVEL_INFO:
            return LogLevel::kInfo;
        case GGML_LOG_LEVEL_CONT:
            return last_level;
        default:
            return LogLevel::kDebug;
    }
}

}  // namespace

void route_llama_log(LogLevel level, std::string_view line) {
    while (!line.empty() && (line.back() == '\n' || line.back() == '\r'))
        line.remove_suffix(1);
    if (line.empty()) return;
    if (level == LogLevel::kError && innermost != nullptr &&
        innermost->errors_.size() < kMaxCaptured) {
        if (!innermost->errors_.empty()) innermost->errors_ += "; ";
        innermost->errors_ += line;
    }
    const std::lock_guard lock(sink_mutex);
    if (current_sink) current_sink(level, line);
}

void set_log_sink(LogSink sink) {
    const std::lock_guard lock(sink_mutex);
    current_sink = std::move(sink);
}

LogSink stderr_log_sink() {
    return [](LogLevel, std::string_view line) {
        std::fprintf(stderr, "%.*s\n", static_cast<int>(line.size()), line.data());
    };
}

void initialize_llama() {
    static std::once_flag once;
    std::call_once(once, [] {
        llama_log_set(
            [](ggml_log_level level, const char* text, void*) {
                last_level = level_of(level);
                route_llama_log(last_level, text);
            },
            nullptr);
        llama_backend_init();
    });
}

LogCapture::LogCapture() : outer_(innermost) {
    innermost = this;
}

LogCapture::~LogCapture() {
    innermost = outer_;
}

std::string LogCapture::errors_or(std::string_view fallback) const {
    return errors_.empty() ? std::string(fallback) : errors_;
}

}  // namespace fermata
