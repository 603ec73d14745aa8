#include "runtime/disk_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <exception>
#include <filesystem>
#include <new>
#include <optional>
#include <string_view>
#include <utility>

namespace fermata {

namespace {

constexpr const char* kWhole = ".kv";
constexpr const char* kPart = ".part";
// Of sequences that wait to be written. A longer one is written alone.
constexpr std::int64_t kMostWaiting = std::int64_t{512} << 20;
// Heads that are read at the start.
constexpr std::size_t kMostFound = 1024;
constexpr std::size_t kIdDigits = 16;
// A tenth of a second apart: the process before may be ending.
constexpr int kLockTries = 20;

// Of the name of a file that this class has written; nullopt: it is none.
std::optional<FileId> id_in(std::string_view name, std::string_view ending) {
    if (name.size() != kIdDigits + ending.size() || !name.ends_with(ending)) return std::nullopt;
    FileId id = 0;
    for (const char digit : name.substr(0, kIdDigits)) {
        const std::size_t value = std::string_view("0123456789abcdef").find(digit);
        if (value == std::string_view::npos) return std::nullopt;
        id = id * 16 + value;
    }
    return id;
}

std::int64_t bytes_of(std::span<const Token> tokens, const SavedCells& cells,
                      std::span<const SavedCells> forks) {
    std::int64_t bytes =
        kFileHeaderBytes + static_cast<std::int64_t>(tokens.size() * sizeof(Token) + cells.size());
    for (const SavedCells& fork : forks)
        bytes += kFileForkBytes + static_cast<std::int64_t>(fork.size());
    return bytes;
}

}  // namespace

DiskFiles::DiskFiles(std::string directory, FileKind kind)
    : directory_(std::move(directory)), kind_(kind) {
    usable_ = take_directory();
    if (usable_) read_directory();
}

DiskFiles::~DiskFiles() {
    {
        const std::lock_guard lock(mutex_);
        ending_ = true;
        stopped_.store(true);
    }
    work_.notify_all();
    if (thread_.joinable()) thread_.join();
    if (lock_ >= 0) ::close(lock_);
}

std::string DiskFiles::path_of(FileId id, const char* ending) const {
    char name[kIdDigits + 1];
    std::snprintf(name, sizeof(name), "%016llx", static_cast<unsigned long long>(id));
    return directory_ + "/" + name + ending;
}

bool DiskFiles::take_directory() {
    std::error_code error;
    const std::filesystem::path path(directory_);
    if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), error);
    if (::mkdir(directory_.c_str(), 0700) != 0 && errno != EEXIST) {
        note_fault(std::strerror(errno));
        return false;
    }
    lock_ = ::open((directory_ + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (lock_ < 0) {
        note_fault(std::strerror(errno));
        return false;
    }
    for (int tried = 0; ::flock(lock_, LOCK_EX | LOCK_NB) != 0; ++tried) {
        const bool again = errno == EWOULDBLOCK || errno == EINTR;
        if (!again || tried == kLockTries) {
            note_fault(again ? "another process uses it" : std::strerror(errno));
            return false;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    return true;
}

void DiskFiles::read_directory() {
    DIR* directory = ::opendir(directory_.c_str());
    if (directory == nullptr) return note_fault(std::strerror(errno));
    std::vector<std::pair<std::int64_t, FileId>> newest;  // minus the time of writing
    while (const dirent* entry = ::readdir(directory)) {
        if (const auto part = id_in(entry->d_name, kPart)) ::unlink(path_of(*part, kPart).c_str());
        const auto id = id_in(entry->d_name, kWhole);
        struct stat about{};
        if (!id || *id == 0 || ::stat(path_of(*id, kWhole).c_str(), &about) != 0) continue;
        newest.emplace_back(-static_cast<std::int64_t>(about.st_mtime), *id);
    }
    ::closedir(directory);
    std::ranges::sort(newest);
    const auto now = static_cast<std::int64_t>(std::time(nullptr));
    for (const auto& [minus_time, id] : newest) {
        const std::string path = path_of(id, kWhole);
        FoundFile found{.id = id, .age_ms = std::max<std::int64_t>(now + minus_time, 0) * 1000};
        std::string why;
        const FileFault fault = found_.size() >= kMostFound ? FileFault::kStopped
                                                            : read_tokens(path, kind_, found, why);
        if (fault == FileFault::kNone) {
            found_.push_back(std::move(found));
            continue;
        }
        damaged_ += fault == FileFault::kDamaged;
        foreign_ += fault == FileFault::kForeign;
        if (fault == FileFault::kRefused) note_fault(why);
        ::unlink(path.c_str());
    }
}

void DiskFiles::start(std::function<void()> on_outcome) {
    on_outcome_ = std::move(on_outcome);
    if (usable_) thread_ = std::thread([this] { run(); });
}

void DiskFiles::close_within(std::chrono::milliseconds time) {
    const std::lock_guard lock(mutex_);
    deadline_ = std::chrono::steady_clock::now() + time;
}

void DiskFiles::flush() {
    std::unique_lock lock(mutex_);
    if (thread_.joinable())
        written_.wait_until(lock, deadline_, [this] { return writes_.empty(); });
}

std::vector<FoundFile> DiskFiles::take_found() {
    return std::exchange(found_, {});
}

bool DiskFiles::room_for(std::int64_t bytes) const {
    return usable_ && (writes_.empty() || waiting_bytes_ + bytes <= kMostWaiting);
}

bool DiskFiles::has_room(std::int64_t bytes) const {
    const std::lock_guard lock(mutex_);
    return room_for(bytes);
}

bool DiskFiles::wait_for_room(std::int64_t bytes) {
    std::unique_lock lock(mutex_);
    if (!usable_) return false;
    const bool fits = written_.wait_until(lock, deadline_, [&] { return room_for(bytes); });
    return fits && std::chrono::steady_clock::now() < deadline_;
}

void DiskFiles::write(FileId id, Salt salt, std::vector<Token> tokens, SavedCells cells,
                      std::vector<SavedCells> forks) {
    const std::lock_guard lock(mutex_);
    const std::int64_t bytes = bytes_of(tokens, cells, forks);
    waiting_bytes_ += bytes;
    writes_.push_back({.id = id,
                       .salt = salt,
                       .tokens = std::move(tokens),
                       .cells = std::move(cells),
                       .forks = std::move(forks),
                       .bytes = bytes});
    work_.notify_one();
}

void DiskFiles::read(FileId id) {
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

void DiskFiles::remove(FileId id) {
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

std::vector<FileOutcome> DiskFiles::take_outcomes() {
    const std::lock_guard lock(mutex_);
    return std::exchange(outcomes_, {});
}

std::string DiskFiles::fault() const {
    const std::lock_guard lock(mutex_);
    return fault_;
}

void DiskFiles::note_fault(const std::string& what) {
    const std::lock_guard lock(mutex_);
    if (fault_.empty()) fault_ = directory_ + ": " + what;
}

void DiskFiles::tell(FileOutcome outcome) {
    {
        const std::lock_guard lock(mutex_);
        outcomes_.push_back(std::move(outcome));
    }
    on_outcome_();
}

void DiskFiles::run() {
    std::unique_lock lock(mutex_);
    while (true) {
        work_.wait(lock, [this] {
            return ending_ || !reads_.empty() || !removals_.empty() || !writes_.empty();
        });
        if (ending_) return;
        if (!reads_.empty()) {
            const FileId id = reads_.front();
            reads_.pop_front();
            lock.unlock();
            do_read(id);
        } else if (!removals_.empty()) {
            const FileId id = removals_.front();
            removals_.pop_front();
            lock.unlock();
            ::unlink(path_of(id, kWhole).c_str());
        } else {
            writing_ = true;
            lock.unlock();
            do_write();
        }
        lock.lock();
    }
}

void DiskFiles::do_read(FileId id) {
    const std::string path = path_of(id, kWhole);
    FileOutcome outcome{.id = id, .event = FileEvent::kUnreadable};
    FileFault fault = FileFault::kRefused;
    std::string why;
    try {
        fault = read_cells(path, kind_, outcome.cells, outcome.forks, stopped_, why);
    } catch (const std::bad_alloc&) {
        why = "there is no memory to read a sequence";
    }
    if (fault == FileFault::kStopped) return;
    if (fault == FileFault::kNone) outcome.event = FileEvent::kRead;
    if (fault == FileFault::kDamaged || fault == FileFault::kForeign)
        outcome.event = FileEvent::kDamaged;
    if (fault == FileFault::kRefused) note_fault(why);
    if (fault != FileFault::kNone) ::unlink(path.c_str());
    tell(std::move(outcome));
}

// The first of the queue stays there while it is written: it can be read from memory, and nothing
// else takes it out.
void DiskFiles::do_write() {
    const Write& next = writes_.front();
    const std::string part = path_of(next.id, kPart);
    const std::string whole = path_of(next.id, kWhole);
    std::string why;
    FileFault fault =
        write_sequence(part, kind_, next.salt, next.tokens, next.cells, next.forks, stopped_, why);
    if (fault == FileFault::kNone && ::rename(part.c_str(), whole.c_str()) != 0) {
        why = std::strerror(errno);
        fault = FileFault::kRefused;
        ::unlink(part.c_str());
    }
    if (fault == FileFault::kRefused) note_fault(why);
    FileOutcome outcome{
        .id = next.id,
        .event = fault == FileFault::kNone ? FileEvent::kWritten : FileEvent::kNotWritten};
    Write done;
    {
        const std::lock_guard lock(mutex_);
        done = std::move(writes_.front());
        writes_.pop_front();
        waiting_bytes_ -= done.bytes;
        writing_ = false;
    }
    if (done.removed && fault == FileFault::kNone) ::unlink(whole.c_str());
    written_.notify_all();
    if (!done.removed) tell(std::move(outcome));
}

}  // namespace fermata
