#include "runtime/sequence_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "core/checksum.h"

namespace fermata {

namespace {

constexpr std::array<char, 8> kMagic = {'F', 'E', 'R', 'M', 'A', 'T', 'A', 'S'};
constexpr std::uint32_t kVersion = 4;
constexpr std::size_t kPiece = std::size_t{4} << 20;

struct Header {
    std::array<char, 8> magic = kMagic;
    std::uint32_t version = kVersion;
    std::uint32_t tokens = 0;
    std::uint64_t fingerprint = 0;
    std::uint64_t cell_bytes = 0;
    Salt salt = 0;
    std::uint64_t head_checksum = 0;
    std::uint64_t cells_checksum = 0;
    std::uint64_t forks = 0;
};
static_assert(sizeof(Header) == kFileHeaderBytes);

struct ForkSize {
    std::uint64_t bytes = 0;
    std::uint64_t length = 0;
};
static_assert(sizeof(ForkSize) == kFileForkBytes);

// What stands before the cells.
struct Head {
    Header header = {};
    std::vector<Token> tokens = {};
    std::vector<ForkSize> forks = {};
};

class Descriptor {
   public:
    Descriptor(const std::string& path, int flags) : number_(::open(path.c_str(), flags, 0600)) {}
    ~Descriptor() { close(); }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    bool is_open() const { return number_ >= 0; }
    int number() const { return number_; }
    bool close() { return number_ < 0 || ::close(std::exchange(number_, -1)) == 0; }

   private:
    int number_;
};

FileFault refused(std::string& why) {
    why = std::strerror(errno);
    return FileFault::kRefused;
}

FileFault write_all(int file, std::span<const std::byte> bytes, const std::atomic<bool>& stopped,
                    std::string& why) {
    while (!bytes.empty()) {
        if (stopped.load()) return FileFault::kStopped;
        const ssize_t written = ::write(file, bytes.data(), std::min(bytes.size(), kPiece));
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return refused(why);
        bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
    return FileFault::kNone;
}

FileFault read_all(int file, std::span<std::byte> bytes, const std::atomic<bool>& stopped,
                   std::string& why) {
    while (!bytes.empty()) {
        if (stopped.load()) return FileFault::kStopped;
        const ssize_t read = ::read(file, bytes.data(), std::min(bytes.size(), kPiece));
        if (read < 0 && errno == EINTR) continue;
        if (read < 0) return refused(why);
        if (read == 0) return FileFault::kDamaged;
        bytes = bytes.subspan(static_cast<std::size_t>(read));
    }
    return FileFault::kNone;
}

template <typename T>
std::span<const std::byte> bytes_of(const T& value) {
    return std::as_bytes(std::span(&value, 1));
}

std::uint64_t head_checksum(const Header& header, std::span<const Token> tokens,
                            std::span<const ForkSize> forks) {
    const auto begin = bytes_of(header).first(offsetof(Header, head_checksum));
    std::uint64_t sum = checksum_of(begin);
    for (const auto part : {bytes_of(header.forks), std::as_bytes(tokens), std::as_bytes(forks)})
        sum = sum * 31 + checksum_of(part);
    return sum;
}

// The same however its bytes are parted.
std::uint64_t pages_checksum(const SavedCells& cells) {
    Checksum sum;
    for (std::size_t page = 0; page < cells.page_count(); ++page)
        sum.add(cells.page(page));
    return sum.value();
}

std::uint64_t cells_checksum(const SavedCells& cells, std::span<const SavedCells> forks) {
    std::uint64_t sum = pages_checksum(cells);
    for (const SavedCells& fork : forks)
        sum = sum * 31 + pages_checksum(fork);
    return sum;
}

// Whether the parts add up to a file of so many bytes. Nothing of the header is trusted.
bool adds_up(const Header& header, std::int64_t bytes, FileKind kind) {
    const auto rest = static_cast<std::uint64_t>(bytes - kFileHeaderBytes);
    const bool counts = header.tokens > 0 &&
                        header.tokens <= static_cast<std::uint32_t>(kind.longest) &&
                        header.forks <= kMostFiledForks;
    if (!counts || header.cell_bytes == 0 || header.cell_bytes > rest) return false;
    const std::uint64_t sizes =
        std::uint64_t{header.tokens} * sizeof(Token) + header.forks * sizeof(ForkSize);
    return header.forks == 0 ? rest - header.cell_bytes == sizes : rest - header.cell_bytes > sizes;
}

bool forks_add_up(const Head& head, std::int64_t bytes) {
    std::uint64_t left = static_cast<std::uint64_t>(bytes - kFileHeaderBytes) -
                         head.header.cell_bytes - head.tokens.size() * sizeof(Token) -
                         head.forks.size() * sizeof(ForkSize);
    for (const ForkSize& fork : head.forks) {
        const bool fits = fork.bytes > 0 && fork.bytes <= left && fork.length > 0 &&
                          fork.length < head.tokens.size();
        if (!fits) return false;
        left -= fork.bytes;
    }
    return left == 0;
}

// The file stands behind the head then.
FileFault read_head(const Descriptor& file, FileKind kind, Head& head, std::int64_t& bytes,
                    std::string& why) {
    const std::atomic<bool> goes_on{false};
    struct stat about{};
    if (::fstat(file.number(), &about) != 0) return refused(why);
    bytes = about.st_size;
    Header& header = head.header;
    if (!S_ISREG(about.st_mode) || bytes < kFileHeaderBytes) return FileFault::kDamaged;
    if (const FileFault fault =
            read_all(file.number(), std::as_writable_bytes(std::span(&header, 1)), goes_on, why);
        fault != FileFault::kNone)
        return fault;
    if (header.magic != kMagic) return FileFault::kDamaged;
    if (header.version != kVersion || header.fingerprint != kind.fingerprint)
        return FileFault::kForeign;
    if (!adds_up(header, bytes, kind)) return FileFault::kDamaged;
    head.tokens.resize(header.tokens);
    head.forks.resize(header.forks);
    for (const auto part : {std::as_writable_bytes(std::span(head.tokens)),
                            std::as_writable_bytes(std::span(head.forks))})
        if (const FileFault fault = read_all(file.number(), part, goes_on, why);
            fault != FileFault::kNone)
            return fault;
    const bool is_right = header.head_checksum == head_checksum(header, head.tokens, head.forks) &&
                          forks_add_up(head, bytes);
    return is_right ? FileFault::kNone : FileFault::kDamaged;
}

Head head_for(FileKind kind, Salt salt, std::span<const Token> tokens, const SavedCells& cells,
              std::span<const SavedCells> forks) {
    Head head;
    for (const SavedCells& fork : forks)
        head.forks.push_back({fork.size(), static_cast<std::uint64_t>(fork.length())});
    Header& header = head.header;
    header.tokens = static_cast<std::uint32_t>(tokens.size());
    header.fingerprint = kind.fingerprint;
    header.cell_bytes = cells.size();
    header.salt = salt;
    header.forks = forks.size();
    header.cells_checksum = cells_checksum(cells, forks);
    header.head_checksum = head_checksum(header, tokens, head.forks);
    return head;
}

// More than any sequence has.
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 44;

// Its numbers fit its size, and no more is said of them.
bool unpack(std::span<const std::byte> bytes, Head& head) {
    if (bytes.size() < sizeof(Header)) return false;
    std::memcpy(&head.header, bytes.data(), sizeof(Header));
    const std::size_t rest = bytes.size() - sizeof(Header);
    const std::uint64_t tokens = std::uint64_t{head.header.tokens} * sizeof(Token);
    if (head.header.forks > kMostFiledForks ||
        rest != tokens + head.header.forks * sizeof(ForkSize))
        return false;
    head.tokens.resize(head.header.tokens);
    head.forks.resize(head.header.forks);
    const std::byte* from = bytes.data() + sizeof(Header);
    if (tokens > 0) std::memcpy(head.tokens.data(), from, tokens);
    if (!head.forks.empty())
        std::memcpy(head.forks.data(), from + tokens, head.forks.size() * sizeof(ForkSize));
    return true;
}

}  // namespace

std::vector<std::byte> head_of(FileKind kind, Salt salt, std::span<const Token> tokens,
                               const SavedCells& cells, std::span<const SavedCells> forks) {
    const Head head = head_for(kind, salt, tokens, cells, forks);
    std::vector<std::byte> bytes;
    for (const auto part :
         {bytes_of(head.header), std::as_bytes(tokens), std::as_bytes(std::span(head.forks))})
        bytes.insert(bytes.end(), part.begin(), part.end());
    return bytes;
}

FileFault parse_head(std::span<const std::byte> bytes, FileKind kind, FoundFile& found) {
    Head head;
    if (!unpack(bytes, head) || head.header.magic != kMagic) return FileFault::kDamaged;
    if (head.header.version != kVersion || head.header.fingerprint != kind.fingerprint)
        return FileFault::kForeign;
    std::uint64_t total = bytes.size();
    if (head.header.cell_bytes > kMostBytes) return FileFault::kDamaged;
    total += head.header.cell_bytes;
    for (const ForkSize& fork : head.forks) {
        if (fork.bytes > kMostBytes) return FileFault::kDamaged;
        total += fork.bytes;
    }
    found.bytes = static_cast<std::int64_t>(total);
    if (!adds_up(head.header, found.bytes, kind) || !forks_add_up(head, found.bytes) ||
        head.header.head_checksum != head_checksum(head.header, head.tokens, head.forks))
        return FileFault::kDamaged;
    found.salt = head.header.salt;
    found.tokens = std::move(head.tokens);
    found.forks.clear();
    for (const ForkSize& fork : head.forks)
        found.forks.push_back(static_cast<std::int32_t>(fork.length));
    return FileFault::kNone;
}

void make_room(std::span<const std::byte> bytes, SavedCells& cells,
               std::vector<SavedCells>& forks) {
    Head head;
    if (!unpack(bytes, head)) return;
    cells = SavedCells(head.header.cell_bytes, static_cast<std::int32_t>(head.tokens.size()));
    forks.clear();
    for (const ForkSize& fork : head.forks)
        forks.emplace_back(fork.bytes, static_cast<std::int32_t>(fork.length));
}

bool is_whole(std::span<const std::byte> bytes, const SavedCells& cells,
              std::span<const SavedCells> forks) {
    Head head;
    return unpack(bytes, head) && cells_checksum(cells, forks) == head.header.cells_checksum;
}

FileFault write_sequence(const std::string& path, FileKind kind, Salt salt,
                         std::span<const Token> tokens, const SavedCells& cells,
                         std::span<const SavedCells> forks, const std::atomic<bool>& stopped,
                         std::string& why) {
    const Head head = head_for(kind, salt, tokens, cells, forks);
    Descriptor file(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW);
    if (!file.is_open()) return refused(why);
    FileFault fault = write_all(file.number(), bytes_of(head.header), stopped, why);
    const auto add = [&](std::span<const std::byte> part) {
        if (fault == FileFault::kNone) fault = write_all(file.number(), part, stopped, why);
    };
    add(std::as_bytes(tokens));
    add(std::as_bytes(std::span(head.forks)));
    const auto add_pages = [&](const SavedCells& of) {
        for (std::size_t page = 0; page < of.page_count(); ++page)
            add(of.page(page));
    };
    add_pages(cells);
    for (const SavedCells& fork : forks)
        add_pages(fork);
    if (fault == FileFault::kNone && ::fsync(file.number()) != 0) fault = refused(why);
    if (!file.close() && fault == FileFault::kNone) fault = refused(why);
    if (fault != FileFault::kNone) ::unlink(path.c_str());
    return fault;
}

FileFault read_tokens(const std::string& path, FileKind kind, FoundFile& found, std::string& why) {
    const Descriptor file(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (!file.is_open()) return refused(why);
    Head head;
    const FileFault fault = read_head(file, kind, head, found.bytes, why);
    found.salt = head.header.salt;
    found.tokens = std::move(head.tokens);
    for (const ForkSize& fork : head.forks)
        found.forks.push_back(static_cast<std::int32_t>(fork.length));
    return fault;
}

FileFault read_cells(const std::string& path, FileKind kind, SavedCells& cells,
                     std::vector<SavedCells>& forks, const std::atomic<bool>& stopped,
                     std::string& why) {
    const Descriptor file(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (!file.is_open()) return refused(why);
    Head head;
    std::int64_t bytes = 0;
    FileFault fault = read_head(file, kind, head, bytes, why);
    if (fault != FileFault::kNone) return fault;
    SavedCells found(head.header.cell_bytes, static_cast<std::int32_t>(head.tokens.size()));
    std::vector<SavedCells> found_forks;
    for (const ForkSize& fork : head.forks)
        found_forks.emplace_back(fork.bytes, static_cast<std::int32_t>(fork.length));
    fault = read_all(file.number(), found.page(0), stopped, why);
    for (SavedCells& fork : found_forks)
        if (fault == FileFault::kNone) fault = read_all(file.number(), fork.page(0), stopped, why);
    if (fault != FileFault::kNone) return fault;
    if (cells_checksum(found, found_forks) != head.header.cells_checksum)
        return FileFault::kDamaged;
    cells = std::move(found);
    forks = std::move(found_forks);
    return FileFault::kNone;
}

}  // namespace fermata
