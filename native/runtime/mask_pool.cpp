#include "runtime/mask_pool.h"

#include <system_error>

namespace fermata {

MaskPool::MaskPool(int threads) {
    try {
        for (int i = 0; i < threads; ++i)
            threads_.emplace_back([this] { run(); });
    } catch (const std::system_error&) {
        // The threads that there are must do.
    }
}

MaskPool::~MaskPool() {
    {
        const std::lock_guard lock(mutex_);
        closing_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_)
        thread.join();
}

void MaskPool::start(std::span<Guide* const> guides) {
    {
        const std::lock_guard lock(mutex_);
        guides_.assign(guides.begin(), guides.end());
        begun_ = 0;
        prepared_ = 0;
    }
    if (guides.size() == 1) {
        wake_.notify_one();
    } else {
        wake_.notify_all();
    }
}

void MaskPool::finish() {
    std::unique_lock lock(mutex_);
    work(lock);
    done_.wait(lock, [this] { return prepared_ == guides_.size(); });
}

void MaskPool::run() {
    std::unique_lock lock(mutex_);
    while (true) {
        wake_.wait(lock, [this] { return closing_ || begun_ < guides_.size(); });
        if (closing_) return;
        work(lock);
    }
}

void MaskPool::work(std::unique_lock<std::mutex>& lock) {
    while (begun_ < guides_.size()) {
        Guide& guide = *guides_[begun_++];
        lock.unlock();
        guide.prepare();
        lock.lock();
        if (++prepared_ == guides_.size()) done_.notify_one();
    }
}

}  // namespace fermata
