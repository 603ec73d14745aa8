// One saved sequence in one file: a header, the tokens, the cells and forks of them.
//
//   bytes  0  "FERMATAS", then the format's version and the number of tokens, 4 bytes each
//         16  the fingerprint of model, options and build
//         24  bytes of cells
//         32  salt
//         40  checksum of what stands before it, of the number of forks, the tokens and the sizes
//         48  checksum of the cells and forks
//         56  number of forks
//         64  tokens, 4 bytes each; bytes and length of each fork, 8 bytes each; cells; forks
//
// Numbers are as the machine writes them. Nothing throws but for want of memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/backend.h"
#include "core/sequence_files.h"
#include "core/types.h"

namespace fermata {

enum class FileFault : std::uint8_t {
    kNone,
    kDamaged,  // cut, changed, or none of ours
    kForeign,  // whole, but of another model, options, build or format
    kRefused,  // by the system; `why` says what
    kGone,     // the place had no room for it any more
    kStopped,
};

// What all files of an engine have in common.
struct FileKind {
    std::uint64_t fingerprint = 0;
    std::int32_t longest = 0;  // tokens of a sequence
};

// Creates `path`, for this user only, and writes all of it to the disk. Nothing is left of it after
// a fault. `stopped` is looked at every few MiB.
FileFault write_sequence(const std::string& path, FileKind kind, Salt salt,
                         std::span<const Token> tokens, const SavedCells& cells,
                         std::span<const SavedCells> forks, const std::atomic<bool>& stopped,
                         std::string& why);
// Salt, tokens, lengths of forks and size of the file into `found`; the cells are not read.
FileFault read_tokens(const std::string& path, FileKind kind, FoundFile& found, std::string& why);
FileFault read_cells(const std::string& path, FileKind kind, SavedCells& cells,
                     std::vector<SavedCells>& forks, const std::atomic<bool>& stopped,
                     std::string& why);

// The same where the parts are kept apart: what stands before the cells, as bytes.
std::vector<std::byte> head_of(FileKind kind, Salt salt, std::span<const Token> tokens,
                               const SavedCells& cells, std::span<const SavedCells> forks);
// As read_tokens. Nothing of the head is trusted.
FileFault parse_head(std::span<const std::byte> head, FileKind kind, FoundFile& found);
// Room for the cells and forks of a sound head, and whether what is in it now is what was written.
void make_room(std::span<const std::byte> head, SavedCells& cells, std::vector<SavedCells>& forks);
bool is_whole(std::span<const std::byte> head, const SavedCells& cells,
              std::span<const SavedCells> forks);

}  // namespace fermata
