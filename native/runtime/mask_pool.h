// Threads that make masks while the inference thread is in a decode call.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <thread>
#include <vector>

#include "core/mask_runner.h"

namespace fermata {

class MaskPool final : public MaskRunner {
   public:
    // Starts up to `threads` threads; without any, finish() does the work.
    explicit MaskPool(int threads);
    // Only when no start() waits for its finish().
    ~MaskPool() override;
    MaskPool(const MaskPool&) = delete;
    MaskPool& operator=(const MaskPool&) = delete;

    void start(std::span<Guide* const> guides) override;
    // Helps with what no thread has begun.
    void finish() override;

   private:
    void run();
    // Prepares guides until all are begun. With the lock held, which it gives up meanwhile.
    void work(std::unique_lock<std::mutex>& lock);

    std::mutex mutex_;
    std::condition_variable wake_;
    std::condition_variable done_;
    std::vector<Guide*> guides_;
    std::size_t begun_ = 0;
    std::size_t prepared_ = 0;
    bool closing_ = false;
    std::vector<std::thread> threads_;
};

}  // namespace fermata
