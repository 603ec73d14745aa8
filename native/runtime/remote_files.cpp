#include "runtime/remote_files.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <random>
#include <utility>

namespace fermata {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::size_t kPiece = std::size_t{8} << 20;
constexpr const char* kExpiresMs = "3600000";  // an hour after the last use
constexpr const char* kLogLength = "4096";     // announcements, about
constexpr const char* kLogAtOnce = "64";
// Names of the stream that are let go: it is read anew after a connection was lost.
constexpr std::size_t kMostGone = 2 * 4096;
constexpr milliseconds kLogEvery{100};
constexpr milliseconds kShortestPause{500};
constexpr milliseconds kLongestPause{30'000};

std::uint64_t any_number() {
    std::random_device random;
    return (std::uint64_t{random()} << 32) ^ random();
}

// Cells and forks as one row of bytes, and a part of it.
template <class Byte, class Cells>
std::vector<std::span<Byte>> parts_of(Cells& cells, std::span<Cells> forks, std::size_t from,
                                      std::size_t count) {
    std::vector<std::span<Byte>> parts;
    const auto add = [&](Cells& of) {
        for (std::size_t page = 0; page < of.page_count(); ++page) {
            const std::span<Byte> bytes = of.page(page);
            const std::size_t skipped = std::min(from, bytes.size());
            const std::size_t taken = std::min(count, bytes.size() - skipped);
            if (taken > 0) parts.push_back(bytes.subspan(skipped, taken));
            from -= skipped;
            count -= taken;
        }
    };
    add(cells);
    for (Cells& fork : forks)
        add(fork);
    return parts;
}

std::size_t body_size(const SavedCells& cells, std::span<const SavedCells> forks) {
    std::size_t size = cells.size();
    for (const SavedCells& fork : forks)
        size += fork.size();
    return size;
}

}  // namespace

std::string RemoteFiles::hex(std::uint64_t number) {
    std::array<char, 17> text;
    std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(number));
    return text.data();
}

RemoteFiles::RemoteFiles(RedisAddress address, FileKind kind)
    : address_(std::move(address)),
      kind_(kind),
      place_("redis://" + address_.host + ":" + std::to_string(address_.port)),
      prefix_("fermata:" + hex(kind.fingerprint) + ":"),
      me_(hex(any_number())),
      pause_(kShortestPause) {
    look_around_every(kLogEvery);
}

RemoteFiles::~RemoteFiles() {
    end();
}

std::vector<FoundFile> RemoteFiles::take_found() {
    const std::lock_guard lock(found_mutex_);
    return std::exchange(found_, {});
}

double RemoteFiles::read_ms(std::int64_t bytes) const {
    const double speed = bytes_per_ms_.load();
    return speed > 0 ? static_cast<double>(bytes) / speed : 0;
}

void RemoteFiles::took(std::int64_t bytes, Clock::time_point since) {
    const double ms = std::chrono::duration<double, std::milli>(Clock::now() - since).count();
    const double measured = static_cast<double>(bytes) / std::max(ms, 0.01);
    const double known = bytes_per_ms_.load();
    bytes_per_ms_.store(known > 0 ? known + 0.25 * (measured - known) : measured);
}

bool RemoteFiles::connected() {
    if (redis_) return true;
    if (Clock::now() < next_try_) return false;
    std::string why;
    redis_ = Redis::connect(address_, why);
    if (!redis_) {
        note_fault(place_ + ": " + why);
        next_try_ = Clock::now() + pause_;
        pause_ = std::min(pause_ * 2, kLongestPause);
        return false;
    }
    pause_ = kShortestPause;
    // What was given up meanwhile is found again.
    seen_.assign(1, '0');
    set_usable(true);
    const std::lock_guard lock(found_mutex_);
    reachable_ = true;
    return true;
}

FileFault RemoteFiles::lose(const std::string& what, std::string& why) {
    why = place_ + ": " + what;
    note_fault(why);
    redis_.reset();
    set_usable(false);
    next_try_ = Clock::now() + pause_;
    {
        const std::lock_guard lock(found_mutex_);
        reachable_ = false;
        claims_.clear();
    }
    return FileFault::kRefused;
}

FileFault RemoteFiles::store(const Write& write, std::string& why) {
    if (!connected()) {
        why = place_ + ": not connected";
        return FileFault::kRefused;
    }
    // Before it is announced, so that it is not found.
    const std::string name = hex(any_number());
    names_.insert(name);
    Known& file = known_[write.id];
    file = {.name = name,
            .head = head_of(kind_, write.salt, write.tokens, write.cells, write.forks),
            .own = true};
    const FileFault fault = put(file, write, why);
    if (fault == FileFault::kRefused) erase(write.id);
    return fault;
}

FileFault RemoteFiles::put(const Known& file, const Write& write, std::string& why) {
    const std::size_t size = body_size(write.cells, write.forks);
    const auto since = Clock::now();
    Redis::Reply reply;
    for (std::size_t at = 0; at < size; at += kPiece) {
        if (stopped().load()) return FileFault::kStopped;
        const auto parts = parts_of<const std::byte, const SavedCells>(write.cells, write.forks, at,
                                                                       std::min(kPiece, size - at));
        const std::string piece = key(file.name) + ":" + std::to_string(at / kPiece);
        // PSETEX key ms value: the value comes last.
        if (!redis_->call({"PSETEX", piece, kExpiresMs}, parts, reply))
            return lose(redis_->why(), why);
        if (reply.is_error) {
            why = place_ + ": " + reply.text;
            return FileFault::kRefused;
        }
        if (!look_between_pieces(why)) return FileFault::kRefused;
    }
    if (bytes_per_ms_.load() == 0) took(static_cast<std::int64_t>(size), since);
    const std::span<const std::byte> last(file.head);
    if (!redis_->call(
            {"XADD", key("log"), "MAXLEN", "~", kLogLength, "*", "name", file.name, "head"},
            std::span(&last, 1), reply))
        return lose(redis_->why(), why);
    if (reply.is_error) {
        why = place_ + ": " + reply.text;
        return FileFault::kRefused;
    }
    return keep_log(why) ? FileFault::kNone : FileFault::kRefused;
}

// Announcements have the tokens of what they announce, and go with the last of it.
bool RemoteFiles::keep_log(std::string& why) {
    Redis::Reply reply;
    if (redis_->call({"PEXPIRE", key("log"), kExpiresMs}, reply)) return true;
    lose(redis_->why(), why);
    return false;
}

FileFault RemoteFiles::load(FileId id, SavedCells& cells, std::vector<SavedCells>& forks,
                            std::string& why) {
    const auto found = known_.find(id);
    if (found == known_.end()) return FileFault::kGone;
    const auto forget = [&] {
        names_.erase(found->second.name);
        known_.erase(found);
    };
    if (!connected()) {
        why = place_ + ": not connected";
        forget();
        return FileFault::kRefused;
    }
    const Known& file = found->second;
    make_room(file.head, cells, forks);
    const std::size_t size = body_size(cells, forks);
    const auto since = Clock::now();
    Redis::Reply reply;
    for (std::size_t at = 0; at < size; at += kPiece) {
        if (stopped().load()) return FileFault::kStopped;
        const auto parts =
            parts_of<std::byte, SavedCells>(cells, forks, at, std::min(kPiece, size - at));
        const std::string piece = key(file.name) + ":" + std::to_string(at / kPiece);
        if (!redis_->get({"GETEX", piece, "PX", kExpiresMs}, parts, reply)) {
            lose(redis_->why(), why);
            forget();
            return FileFault::kRefused;
        }
        if (reply.is_null || reply.is_error) {
            why = place_ + ": " + reply.text;
            const auto fault = reply.is_null ? FileFault::kGone : FileFault::kRefused;
            forget();
            return fault;
        }
        if (!look_between_pieces(why)) {
            forget();
            return FileFault::kRefused;
        }
    }
    took(static_cast<std::int64_t>(size), since);
    keep_log(why);
    if (is_whole(file.head, cells, forks)) return FileFault::kNone;
    forget();
    return FileFault::kDamaged;
}

// What others have written is theirs to delete.
void RemoteFiles::erase(FileId id) {
    const auto found = known_.find(id);
    if (found == known_.end()) return;
    const Known file = std::move(found->second);
    known_.erase(found);
    gone_.push_back(file.name);
    if (gone_.size() > kMostGone) {
        names_.erase(gone_.front());
        gone_.pop_front();
    }
    if (!file.own) return;
    FoundFile about;
    if (!connected() || parse_head(file.head, kind_, about) != FileFault::kNone) return;
    const auto pieces =
        (static_cast<std::size_t>(about.bytes) - file.head.size() + kPiece - 1) / kPiece;
    Redis::Reply reply;
    std::string why;
    for (std::size_t piece = 0; piece < pieces; ++piece) {
        if (redis_->call({"UNLINK", key(file.name) + ":" + std::to_string(piece)}, reply)) continue;
        lose(redis_->why(), why);
        return;
    }
}

void RemoteFiles::look_around() {
    std::string why;
    if (connected()) look(why);
}

// false: the connection is lost.
bool RemoteFiles::look(std::string& why) {
    if (!say_claims(why)) return false;
    const Claims claims = ask_claims(why);
    if (redis_) read_log(why);
    tell_claims(claims);
    looked_ = Clock::now();
    return redis_ != nullptr;
}

// Prompts wait for the answers.
bool RemoteFiles::look_between_pieces(std::string& why) {
    return Clock::now() - looked_ < kLogEvery || look(why);
}

void RemoteFiles::read_log(std::string& why) {
    bool news = false;
    while (!stopped().load()) {
        Redis::Reply reply;
        if (!redis_->call({"XREAD", "COUNT", kLogAtOnce, "STREAMS", key("log"), seen_}, reply)) {
            lose(redis_->why(), why);
            break;
        }
        if (reply.is_error) note_fault(place_ + ": " + reply.text);
        // [[stream, [[id, [field, value, ...]], ...]]]
        if (reply.items.empty() || reply.items[0].items.size() != 2) break;
        for (const Redis::Reply& entry : reply.items[0].items[1].items) {
            if (entry.items.size() != 2) continue;
            seen_ = entry.items[0].text;
            const auto& fields = entry.items[1].items;
            if (fields.size() == 4 && fields[0].text == "name" && fields[2].text == "head") {
                take_in(fields[1].text, fields[3].text);
                news = true;
            } else {
                ++damaged_;
            }
        }
    }
    if (news) wake();
}

void RemoteFiles::take_in(const std::string& name, const std::string& text) {
    if (names_.contains(name)) return;
    const auto head = std::as_bytes(std::span(text));
    FoundFile found{.id = next_found_};
    const FileFault fault = parse_head(head, kind_, found);
    if (fault != FileFault::kNone) {
        ++(fault == FileFault::kForeign ? foreign_ : damaged_);
        return;
    }
    names_.insert(name);
    known_[next_found_++] = {.name = name, .head = {head.begin(), head.end()}};
    const std::lock_guard lock(found_mutex_);
    found_.push_back(std::move(found));
}

}  // namespace fermata
