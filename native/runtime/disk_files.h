// Sequences in the files of a directory.
//
// One process has a directory at a time. What cannot be used (no directory, another process has it)
// is an object all the same: it has no room, and says why.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/queued_files.h"

namespace fermata {

class DiskFiles final : public QueuedFiles {
   public:
    // Makes the directory (for this user only) if there is none, and reads the heads of the files
    // there; those that cannot be used are removed. Call on a thread that may wait for the disk.
    DiskFiles(std::string directory, FileKind kind);
    ~DiskFiles() override;

    std::vector<FoundFile> take_found() override;
    std::int64_t foreign() const override { return foreign_; }
    std::int64_t damaged_when_found() const override { return damaged_; }

   private:
    FileFault store(const Write& write, std::string& why) override;
    FileFault load(FileId id, SavedCells& cells, std::vector<SavedCells>& forks,
                   std::string& why) override;
    void erase(FileId id) override;

    bool take_directory(std::string& why);
    void read_directory();
    std::string path_of(FileId id, const char* ending) const;

    const std::string directory_;
    const FileKind kind_;
    int lock_ = -1;
    std::int64_t foreign_ = 0, damaged_ = 0;
    std::vector<FoundFile> found_;
};

}  // namespace fermata
