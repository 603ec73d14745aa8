// Where sequences go that memory has no room for, and that outlive the process: files. The runtime
// implements it with a thread of its own; tests have a fake. The inference thread calls it, and is
// made to wait only where that is said.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/backend.h"
#include "core/types.h"

namespace fermata {

// 0: none. Given by the caller, never again for other tokens.
using FileId = std::uint64_t;
// Ids that the caller of SequenceFiles never gives.
inline constexpr FileId kFoundLater = FileId{1} << 63;

// In front of the tokens, 4 bytes each, this for each fork, the cells and the forks.
inline constexpr std::int64_t kFileHeaderBytes = 64;
inline constexpr std::int64_t kFileForkBytes = 16;
inline constexpr std::size_t kMostFiledForks = 4;

// Bytes of a whole file.
inline std::int64_t file_size(std::span<const Token> tokens, std::size_t cells,
                              std::span<const SavedCells> forks) {
    std::int64_t bytes =
        kFileHeaderBytes + static_cast<std::int64_t>(tokens.size() * sizeof(Token) + cells);
    for (const SavedCells& fork : forks)
        bytes += kFileForkBytes + static_cast<std::int64_t>(fork.size());
    return bytes;
}

// A file that an earlier process left.
struct FoundFile {
    FileId id = 0;
    Salt salt = 0;
    std::vector<Token> tokens = {};
    std::vector<std::int32_t> forks = {};  // their lengths
    std::int64_t bytes = 0;                // of the whole file
    Milliseconds age_ms = 0;               // since it was written
};

enum class FileEvent : std::uint8_t {
    kWritten,
    kNotWritten,  // nothing is left of it
    kRead,
    kDamaged,     // it is not what was written, and gone
    kUnreadable,  // the place refused, and the file is given up
    kGone,        // the place had no room for it any more
};

struct FileOutcome {
    FileId id = 0;
    FileEvent event = FileEvent::kWritten;
    SavedCells cells = {};  // kRead
    std::vector<SavedCells> forks = {};
};

// Who computes something that several servers need.
enum class Claim : std::uint8_t {
    kNobody,  // nobody else would find what is written here, or they cannot be asked
    kAsked,   // it is not known yet
    kOurs,    // no other server, until give_back
    kOthers,  // another server, which will write it
};

class SequenceFiles {
   public:
    virtual ~SequenceFiles() = default;

    // For something that is about to be computed, by a number that is the same at all servers.
    // Never waits: while it is kAsked or kOthers, ask again, and take_found first.
    virtual Claim claim(std::uint64_t /*what*/) { return Claim::kNobody; }
    // After any other answer: it is written, or not wanted any more.
    virtual void give_back(std::uint64_t /*what*/) {}

    // What others have written and is known since the last call: at the start, what was there, the
    // newest first. Ids of files that are found later have kFoundLater. Moved out.
    virtual std::vector<FoundFile> take_found() = 0;
    // What a read of so many bytes takes; 0: it is always worth it.
    virtual double read_ms(std::int64_t /*bytes*/) const { return 0; }
    // Whether a write of so many bytes can be queued now.
    virtual bool has_room(std::int64_t bytes) const = 0;
    // Waits until it can; false: it cannot before the time to close is over.
    virtual bool wait_for_room(std::int64_t bytes) = 0;
    // Only when there is room. The outcome is kWritten or kNotWritten. `forks`: what the cells can
    // be cut back to, at most kMostFiledForks.
    virtual void write(FileId id, Salt salt, std::vector<Token> tokens, SavedCells cells,
                       std::vector<SavedCells> forks) = 0;
    // Of a file that was written, found or is being written. The outcome is one of the others.
    virtual void read(FileId id) = 0;
    // Without an outcome; those that were still to come for the id may come or not.
    virtual void remove(FileId id) = 0;
    // Moved out.
    virtual std::vector<FileOutcome> take_outcomes() = 0;
    // Files of other models, options or builds among those that were found, and damaged ones.
    virtual std::int64_t foreign() const = 0;
    virtual std::int64_t damaged_when_found() const = 0;
    // What the system said when it first refused something; empty: it did not.
    virtual std::string fault() const = 0;
};

}  // namespace fermata
