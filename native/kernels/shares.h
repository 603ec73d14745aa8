// How the threads of an operator divide its work: each has a share that it goes through from
// beginning to end, so that what it reads next is known and can be asked for. A thread that has
// finished its share takes of the others', for one of them may be delayed.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

namespace fermata {

inline constexpr std::size_t kLine = 64;  // bytes of a cache line

struct Range {
    std::int64_t begin, end;
    bool is_empty() const { return begin >= end; }
};

/** Over units [0, count), in memory that the threads have in common (aligned to a line). */
class Shares {
   public:
    static std::size_t bytes(int threads) { return threads * sizeof(Share); }

    Shares(void* memory, int threads, std::int64_t count)
        : shares_(static_cast<Share*>(memory)), threads_(threads), count_(count) {}

    Range of(int thread) const {
        return {count_ * thread / threads_, count_ * (thread + 1) / threads_};
    }

    /** By each thread, before a barrier. */
    void open(int thread) { new (&shares_[thread]) Share{of(thread).begin}; }

    /** The next `size` units or fewer, by `thread`; none when all are taken. */
    Range take(int thread, std::int64_t size) {
        for (int other = 0; other < threads_; ++other) {
            const int from = (thread + other) % threads_;
            const std::int64_t end = of(from).end;
            auto& next = shares_[from].next;
            if (next.load(std::memory_order_relaxed) >= end) continue;
            const std::int64_t begin = next.fetch_add(size, std::memory_order_relaxed);
            if (begin < end) return {begin, std::min(begin + size, end)};
        }
        return {0, 0};
    }

   private:
    struct alignas(kLine) Share {
        std::atomic<std::int64_t> next;
    };

    Share* shares_;
    int threads_;
    std::int64_t count_;
};

}  // namespace fermata
