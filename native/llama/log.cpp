#include "llama/log.h"

#include <mutex>

#include "llama.h"
#include "llama/zeroed_buffers.h"

namespace fermata {

namespace {

constexpr std::size_t kMaxCaptured = 2000;

thread_local LogCapture* innermost = nullptr;
thread_local bool is_error = false;  // the last line; its continuation has no level

}  // namespace

void capture_error(std::string_view line) {
    while (!line.empty() && (line.back() == '\n' || line.back() == '\r'))
        line.remove_suffix(1);
    if (line.empty() || innermost == nullptr || innermost->errors_.size() >= kMaxCaptured) return;
    if (!innermost->errors_.empty()) innermost->errors_ += "; ";
    innermost->errors_ += line;
}

static void on_log(ggml_log_level level, const char* text, void*) {
    if (level != GGML_LOG_LEVEL_CONT) is_error = level == GGML_LOG_LEVEL_ERROR;
    if (is_error) capture_error(text);
}

void initialize_llama() {
    static std::once_flag once;
    std::call_once(once, [] {
        llama_log_set(on_log, nullptr);
        llama_backend_init();
        clear_buffers_by_page();
    });
}

void catch_log(void (*set_log)(ggml_log_callback, void*)) {
    set_log(on_log, nullptr);
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
