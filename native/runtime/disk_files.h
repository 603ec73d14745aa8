// SequenceFiles in a directory, with a thread that reads and writes them. Reads go before writes,
// and what waits to be written is read from memory.
//
// One process has a directory at a time. What cannot be used (no directory, another process has it)
// is an object all the same: it has no room, and says why.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/sequence_files.h"
#include "runtime/sequence_file.h"

namespace fermata {

class DiskFiles final : public SequenceFiles {
   public:
    // Makes the directory (for this user only) if there is none, and reads the heads of the files
    // there; those that cannot be used are removed. Call on a thread that may wait for the disk.
    DiskFiles(std::string directory, FileKind kind);
    // Ends the thread; what it has not written by then is not written.
    ~DiskFiles() override;
    DiskFiles(const DiskFiles&) = delete;
    DiskFiles& operator=(const DiskFiles&) = delete;

    // Starts the thread. `on_outcome` is called on it.
    void start(std::function<void()> on_outcome);
    // From now on waits end when this time is over.
    void close_within(std::chrono::milliseconds time);
    // Waits until everything is written or that time is over.
    void flush();

    std::vector<FoundFile> take_found() override;
    bool has_room(std::int64_t bytes) const override;
    bool wait_for_room(std::int64_t bytes) override;
    void write(FileId id, Salt salt, std::vector<Token> tokens, SavedCells cells,
               std::vector<SavedCells> forks) override;
    void read(FileId id) override;
    void remove(FileId id) override;
    std::vector<FileOutcome> take_outcomes() override;
    std::int64_t foreign() const override { return foreign_; }
    std::int64_t damaged_at_start() const override { return damaged_; }
    std::string fault() const override;

   private:
    struct Write {
        FileId id = 0;
        Salt salt = 0;
        std::vector<Token> tokens = {};
        SavedCells cells = {};
        std::vector<SavedCells> forks = {};
        std::int64_t bytes = 0;
        bool removed = false;  // while it is being written
    };

    bool take_directory();
    void read_directory();
    void run();
    void do_read(FileId id);
    void do_write();
    void tell(FileOutcome outcome);
    void note_fault(const std::string& what);
    bool room_for(std::int64_t bytes) const;
    std::string path_of(FileId id, const char* ending) const;

    const std::string directory_;
    const FileKind kind_;
    int lock_ = -1;
    bool usable_ = false;
    std::int64_t foreign_ = 0, damaged_ = 0;
    std::vector<FoundFile> found_;
    std::function<void()> on_outcome_;

    mutable std::mutex mutex_;
    std::condition_variable work_;     // for the thread
    std::condition_variable written_;  // by the thread
    std::list<Write> writes_;          // the first may be under way
    bool writing_ = false;
    std::deque<FileId> reads_, removals_;
    std::vector<FileOutcome> outcomes_;
    std::int64_t waiting_bytes_ = 0;  // of writes_
    std::chrono::steady_clock::time_point deadline_ = {};
    std::string fault_;
    bool ending_ = false;
    std::atomic<bool> stopped_{false};  // a read or write under way ends soon
    std::thread thread_;
};

}  // namespace fermata
