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
constexpr std::uint32_t kVersion = 2;
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
    std::uint64_t zeros = 0;
};
static_assert(sizeof(Header) == kFileHeaderBytes);

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

std::uint64_t head_checksum(const Header& header, std::span<const Token> tokens) {
    const auto begin = bytes_of(header).first(offsetof(Header, head_checksum));
    return checksum_of(begin) * 31 + checksum_of(std::as_bytes(tokens));
}

// The file stands behind the tokens then.
FileFault read_head(const Descriptor& file, FileKind kind, Header& header,
                    std::vector<Token>& tokens, std::int64_t& bytes, std::string& why) {
    const std::atomic<bool> goes_on{false};
    struct stat about{};
    if (::fstat(file.number(), &about) != 0) return refused(why);
    bytes = about.st_size;
    if (!S_ISREG(about.st_mode) || bytes < kFileHeaderBytes) return FileFault::kDamaged;
    if (const FileFault fault =
            read_all(file.number(), std::as_writable_bytes(std::span(&header, 1)), goes_on, why);
        fault != FileFault::kNone)
        return fault;
    if (header.magic != kMagic) return FileFault::kDamaged;
    if (header.version != kVersion || header.fingerprint != kind.fingerprint)
        return FileFault::kForeign;
    const auto rest = static_cast<std::uint64_t>(bytes - kFileHeaderBytes);
    const std::uint64_t token_bytes = std::uint64_t{header.tokens} * sizeof(Token);
    const bool fits =
        header.tokens > 0 && header.tokens <= static_cast<std::uint32_t>(kind.longest);
    if (!fits || header.cell_bytes == 0 || header.cell_bytes > rest ||
        rest - header.cell_bytes != token_bytes)
        return FileFault::kDamaged;
    tokens.resize(header.tokens);
    if (const FileFault fault =
            read_all(file.number(), std::as_writable_bytes(std::span(tokens)), goes_on, why);
        fault != FileFault::kNone)
        return fault;
    const bool is_right = header.head_checksum == head_checksum(header, tokens);
    return is_right ? FileFault::kNone : FileFault::kDamaged;
}

}  // namespace

FileFault write_sequence(const std::string& path, FileKind kind, Salt salt,
                         std::span<const Token> tokens, const SavedCells& cells,
                         const std::atomic<bool>& stopped, std::string& why) {
    Header header;
    header.tokens = static_cast<std::uint32_t>(tokens.size());
    header.fingerprint = kind.fingerprint;
    header.cell_bytes = cells.size();
    header.salt = salt;
    header.cells_checksum = checksum_of(cells.bytes());
    header.head_checksum = head_checksum(header, tokens);

    Descriptor file(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW);
    if (!file.is_open()) return refused(why);
    FileFault fault = write_all(file.number(), bytes_of(header), stopped, why);
    for (const auto part : {std::as_bytes(tokens), cells.bytes()})
        if (fault == FileFault::kNone) fault = write_all(file.number(), part, stopped, why);
    if (fault == FileFault::kNone && ::fsync(file.number()) != 0) fault = refused(why);
    if (!file.close() && fault == FileFault::kNone) fault = refused(why);
    if (fault != FileFault::kNone) ::unlink(path.c_str());
    return fault;
}

FileFault read_tokens(const std::string& path, FileKind kind, FoundFile& found, std::string& why) {
    const Descriptor file(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (!file.is_open()) return refused(why);
    Header header;
    const FileFault fault = read_head(file, kind, header, found.tokens, found.bytes, why);
    found.salt = header.salt;
    return fault;
}

FileFault read_cells(const std::string& path, FileKind kind, SavedCells& cells,
                     const std::atomic<bool>& stopped, std::string& why) {
    const Descriptor file(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (!file.is_open()) return refused(why);
    Header header;
    std::vector<Token> tokens;
    std::int64_t bytes = 0;
    FileFault fault = read_head(file, kind, header, tokens, bytes, why);
    if (fault != FileFault::kNone) return fault;
    SavedCells found(header.cell_bytes, static_cast<std::int32_t>(header.tokens));
    fault = read_all(file.number(), found.bytes(), stopped, why);
    if (fault != FileFault::kNone) return fault;
    if (checksum_of(std::as_const(found).bytes()) != header.cells_checksum)
        return FileFault::kDamaged;
    cells = std::move(found);
    return FileFault::kNone;
}

}  // namespace fermata
