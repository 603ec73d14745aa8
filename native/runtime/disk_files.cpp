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
#include <filesystem>
#include <new>
#include <optional>
#include <string_view>
#include <utility>

namespace fermata {

namespace {

constexpr const char* kWhole = ".kv";
constexpr const char* kPart = ".part";
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

}  // namespace

DiskFiles::DiskFiles(std::string directory, FileKind kind)
    : directory_(std::move(directory)), kind_(kind) {
    std::string why;
    const bool usable = take_directory(why);
    if (!usable) note_fault(directory_ + ": " + why);
    set_usable(usable);
    if (usable) read_directory();
}

DiskFiles::~DiskFiles() {
    end();
    if (lock_ >= 0) ::close(lock_);
}

std::string DiskFiles::path_of(FileId id, const char* ending) const {
    char name[kIdDigits + 1];
    std::snprintf(name, sizeof(name), "%016llx", static_cast<unsigned long long>(id));
    return directory_ + "/" + name + ending;
}

bool DiskFiles::take_directory(std::string& why) {
    std::error_code error;
    const std::filesystem::path path(directory_);
    if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), error);
    if (::mkdir(directory_.c_str(), 0700) != 0 && errno != EEXIST) {
        why = std::strerror(errno);
        return false;
    }
    lock_ = ::open((directory_ + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (lock_ < 0) {
        why = std::strerror(errno);
        return false;
    }
    for (int tried = 0; ::flock(lock_, LOCK_EX | LOCK_NB) != 0; ++tried) {
        const bool again = errno == EWOULDBLOCK || errno == EINTR;
        if (!again || tried == kLockTries) {
            why = again ? "another process uses it" : std::strerror(errno);
            return false;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    return true;
}

void DiskFiles::read_directory() {
    DIR* directory = ::opendir(directory_.c_str());
    if (directory == nullptr) return note_fault(directory_ + ": " + std::strerror(errno));
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
        if (fault == FileFault::kRefused) note_fault(directory_ + ": " + why);
        ::unlink(path.c_str());
    }
}

std::vector<FoundFile> DiskFiles::take_found() {
    return std::exchange(found_, {});
}

FileFault DiskFiles::store(const Write& write, std::string& why) {
    const std::string part = path_of(write.id, kPart);
    FileFault fault = write_sequence(part, kind_, write.salt, write.tokens, write.cells,
                                     write.forks, stopped(), why);
    if (fault == FileFault::kNone &&
        ::rename(part.c_str(), path_of(write.id, kWhole).c_str()) != 0) {
        why = std::strerror(errno);
        fault = FileFault::kRefused;
        ::unlink(part.c_str());
    }
    why = directory_ + ": " + why;
    return fault;
}

FileFault DiskFiles::load(FileId id, SavedCells& cells, std::vector<SavedCells>& forks,
                          std::string& why) {
    const std::string path = path_of(id, kWhole);
    FileFault fault = FileFault::kRefused;
    try {
        fault = read_cells(path, kind_, cells, forks, stopped(), why);
    } catch (const std::bad_alloc&) {
        why = "there is no memory to read a sequence";
    }
    if (fault != FileFault::kNone && fault != FileFault::kStopped) ::unlink(path.c_str());
    why = directory_ + ": " + why;
    return fault;
}

void DiskFiles::erase(FileId id) {
    ::unlink(path_of(id, kWhole).c_str());
}

}  // namespace fermata
