#include "runtime/queued_files.h"

#include <algorithm>
#include <new>
#include <utility>

namespace fermata {

namespace {

// Of sequences that wait to be written. A longer one is written alone.
constexpr std::int64_t kMostWaiting = std::int64_t{512} << 20;

}  // namespace

void QueuedFiles::start(std::function<void()> on_outcome) {
    on_outcome_ = std::move(on_outcome);
    if (usable_ || pause_.count() > 0) thread_ = std::thread([this] { run(); });
}

void QueuedFiles::end() {
    {
        const std::lock_guard lock(mutex_);
        ending_ = true;
        stopped_.store(true);
    }
    work_.notify_all();
    if (thread_.joinable()) thread_.join();
}

void QueuedFiles::close_within(std::chrono::milliseconds time) {
    const std::lock_guard lock(mutex_);
    deadline_ = std::chrono::steady_clock::now() + time;
}

void QueuedFiles::flush() {
    std::unique_lock lock(mutex_);
    if (thread_.joinable())
        written_.wait_until(lock, deadline_, [this] { return writes_.empty(); });
}

void QueuedFiles::set_usable(bool usable) {
    {
        const std::lock_guard lock(mutex_);
        usable_ = usable;
    }
    written_.notify_all();
}

bool QueuedFiles::room_for(std::int64_t bytes) const {
    return usable_ && (writes_.empty() || waiting_bytes_ + bytes <= kMostWaiting);
}

bool QueuedFiles::has_room(std::int64_t bytes) const {
    const std::lock_guard lock(mutex_);
    return room_for(bytes);
}

bool QueuedFiles::wait_for_room(std::int64_t bytes) {
    std::unique_lock lock(mutex_);
    if (!usable_) return false;
    const bool fits =
        written_.wait_until(lock, deadline_, [&] { return !usable_ || room_for(bytes); });
    return fits && usable_ && std::chrono::steady_clock::now() < deadline_;
}

void QueuedFiles::write(FileId id, Salt salt, std::vector<Token> tokens, SavedCells cells,
                        std::vector<SavedCells> forks) {
    const std::lock_guard lock(mutex_);
    const std::int64_t bytes = file_size(tokens, cells.size(), forks);
    waiting_bytes_ += bytes;
    writes_.push_back({.id = id,
                       .salt = salt,
                       .tokens = std::move(tokens),
                       .cells = std::move(cells),
                       .forks = std::move(forks),
                       .bytes = bytes});
    work_.notify_one();
}

void QueuedFiles::read(FileId id) {
    {
        const std::lock_guard lock(mutex_);
        const auto waiting = std::ranges::find(writes_, id, &Write::id);
        if (waiting == writes_.end()) {
            reads_.push_back(id);
            work_.notify_one();
            return;
        }
        outcomes_.push_back({.id = id,
                             .event = FileEvent::kRead,
                             .cells = waiting->cells,
                             .forks = waiting->forks});
    }
    on_outcome_();
}

void QueuedFiles::remove(FileId id) {
    const std::lock_guard lock(mutex_);
    const auto waiting = std::ranges::find(writes_, id, &Write::id);
    if (waiting == writes_.end()) {
        std::erase(reads_, id);
        removals_.push_back(id);
        work_.notify_one();
    } else if (writing_ && waiting == writes_.begin()) {
        waiting->removed = true;
    } else {
        waiting_bytes_ -= waiting->bytes;
        writes_.erase(waiting);
    }
}

std::vector<FileOutcome> QueuedFiles::take_outcomes() {
    const std::lock_guard lock(mutex_);
    return std::exchange(outcomes_, {});
}

std::string QueuedFiles::fault() const {
    const std::lock_guard lock(mutex_);
    return fault_;
}

void QueuedFiles::note_fault(const std::string& what) {
    const std::lock_guard lock(mutex_);
    if (fault_.empty()) fault_ = what;
}

void QueuedFiles::look_around_soon() {
    {
        const std::lock_guard lock(mutex_);
        looks_ = true;
    }
    work_.notify_one();
}

void QueuedFiles::tell_outcome(FileOutcome outcome) {
    {
        const std::lock_guard lock(mutex_);
        outcomes_.push_back(std::move(outcome));
    }
    on_outcome_();
}

void QueuedFiles::run() {
    look_around();
    std::unique_lock lock(mutex_);
    const auto has_work = [this] {
        return ending_ || looks_ || !reads_.empty() || !removals_.empty() || !writes_.empty();
    };
    while (true) {
        if (pause_.count() > 0)
            work_.wait_for(lock, pause_, has_work);
        else
            work_.wait(lock, has_work);
        if (ending_) return;
        looks_ = false;
        if (!reads_.empty()) {
            const FileId id = reads_.front();
            reads_.pop_front();
            lock.unlock();
            do_read(id);
        } else if (!removals_.empty()) {
            const FileId id = removals_.front();
            removals_.pop_front();
            lock.unlock();
            erase(id);
        } else if (!writes_.empty()) {
            writing_ = true;
            lock.unlock();
            do_write();
        } else {
            lock.unlock();
        }
        look_around();
        lock.lock();
    }
}

void QueuedFiles::do_read(FileId id) {
    FileOutcome outcome{.id = id, .event = FileEvent::kUnreadable};
    FileFault fault = FileFault::kRefused;
    std::string why;
    try {
        fault = load(id, outcome.cells, outcome.forks, why);
    } catch (const std::bad_alloc&) {
        why = "there is no memory to read a sequence";
    }
    if (fault == FileFault::kStopped) return;
    if (fault == FileFault::kNone) outcome.event = FileEvent::kRead;
    if (fault == FileFault::kGone) outcome.event = FileEvent::kGone;
    if (fault == FileFault::kDamaged || fault == FileFault::kForeign)
        outcome.event = FileEvent::kDamaged;
    if (fault == FileFault::kRefused) note_fault(why);
    tell_outcome(std::move(outcome));
}

// The first of the queue stays there while it is written: it can be read from memory, and nothing
// else takes it out.
void QueuedFiles::do_write() {
    FileFault fault = FileFault::kRefused;
    std::string why;
    try {
        fault = store(writes_.front(), why);
    } catch (const std::bad_alloc&) {
        why = "there is no memory to write a sequence";
    }
    if (fault == FileFault::kRefused) note_fault(why);
    Write done;
    {
        const std::lock_guard lock(mutex_);
        done = std::move(writes_.front());
        writes_.pop_front();
        waiting_bytes_ -= done.bytes;
        writing_ = false;
    }
    if (done.removed && fault == FileFault::kNone) erase(done.id);
    written_.notify_all();
    if (!done.removed)
        tell_outcome(
            {.id = done.id,
             .event = fault == FileFault::kNone ? FileEvent::kWritten : FileEvent::kNotWritten});
}

}  // namespace fermata
