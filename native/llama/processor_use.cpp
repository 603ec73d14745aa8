#include "llama/processor_use.h"

#ifdef __linux__
#include <fcntl.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>
#endif

namespace fermata {

#ifdef __linux__

namespace {

double seconds(clockid_t clock) {
    timespec time{};
    clock_gettime(clock, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace

ProcessorUseReader::ProcessorUseReader() {
    cpu_set_t allowed;
    // Fails beyond 1,024 processors.
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
    for (std::size_t core = 0; core < CPU_SETSIZE; ++core)
        usable_.push_back(CPU_ISSET(core, &allowed));
    file_ = open("/proc/stat", O_RDONLY | O_CLOEXEC);
    if (file_ >= 0) cores_ = CPU_COUNT(&allowed);
}

ProcessorUseReader::~ProcessorUseReader() {
    if (file_ >= 0) close(file_);
}

std::optional<ProcessorUse> ProcessorUseReader::read() {
    // The processors' lines come first, about 60 bytes each.
    std::array<char, 1 << 16> text;
    const ssize_t size = file_ < 0 ? -1 : pread(file_, text.data(), text.size() - 1, 0);
    if (size <= 0) return std::nullopt;
    text[static_cast<std::size_t>(size)] = '\0';
    long long ticks = 0;
    for (const char* line = text.data(); std::strncmp(line, "cpu", 3) == 0;) {
        std::size_t core = 0;
        long long user = 0, system = 0, interrupt = 0, soft = 0;
        // user, nice, system, idle, waiting, interrupts
        constexpr const char* kFields = "cpu%zu %lld %*d %lld %*d %*d %lld %lld";
        if (std::sscanf(line, kFields, &core, &user, &system, &interrupt, &soft) == 5 &&
            core < usable_.size() && usable_[core]) {
            ticks += user + system + interrupt + soft;
        }
        line = std::strchr(line, '\n');
        if (line == nullptr) break;
        ++line;
    }
    return ProcessorUse{seconds(CLOCK_MONOTONIC),
                        static_cast<double>(ticks) / static_cast<double>(sysconf(_SC_CLK_TCK)),
                        seconds(CLOCK_PROCESS_CPUTIME_ID)};
}

#else

ProcessorUseReader::ProcessorUseReader() = default;
ProcessorUseReader::~ProcessorUseReader() = default;
std::optional<ProcessorUse> ProcessorUseReader::read() {
    return std::nullopt;
}

#endif

}  // namespace fermata
