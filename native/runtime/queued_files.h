// SequenceFiles with a thread that does the work: queues in front of a place where sequences are
// kept. Reads go before writes, and what waits to be written is read from memory.
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

class QueuedFiles : public SequenceFiles {
   public:
    QueuedFiles(const QueuedFiles&) = delete;
    QueuedFiles& operator=(const QueuedFiles&) = delete;

    // Starts the thread, if the place can be used. `on_outcome` is called on it.
    void start(std::function<void()> on_outcome);
    // From now on waits end when this time is over.
    void close_within(std::chrono::milliseconds time);
    // Waits until everything is written or that time is over.
    void flush();

    bool has_room(std::int64_t bytes) const override;
    bool wait_for_room(std::int64_t bytes) override;
    void write(FileId id, Salt salt, std::vector<Token> tokens, SavedCells cells,
               std::vector<SavedCells> forks) override;
    void read(FileId id) override;
    void remove(FileId id) override;
    std::vector<FileOutcome> take_outcomes() override;
    std::string fault() const override;

   protected:
    struct Write {
        FileId id = 0;
        Salt salt = 0;
        std::vector<Token> tokens = {};
        SavedCells cells = {};
        std::vector<SavedCells> forks = {};
        std::int64_t bytes = 0;
        bool removed = false;  // while it is being written
    };

    QueuedFiles() = default;

    // The place's work, on the thread. `stopped()` is looked at every few MiB.
    virtual FileFault store(const Write& write, std::string& why) = 0;
    // Fills `cells` and `forks`. After a fault but kStopped, nothing is left of it.
    virtual FileFault load(FileId id, SavedCells& cells, std::vector<SavedCells>& forks,
                           std::string& why) = 0;
    virtual void erase(FileId id) = 0;
    // Between two pieces of work, and after each wait for one.
    virtual void look_around() {}

    // Ends the thread; what it has not written by then is not written. The place's destructor calls
    // it first.
    void end();
    void tell_outcome(FileOutcome outcome);
    void note_fault(const std::string& what);
    void set_usable(bool usable);
    // How long the thread waits for work before it looks around; 0: until there is some.
    void look_around_every(std::chrono::milliseconds time) { pause_ = time; }
    const std::atomic<bool>& stopped() const { return stopped_; }
    void wake() const { on_outcome_(); }
    // As soon as the piece of work under way is done. From any thread.
    void look_around_soon();

   private:
    void run();
    void do_read(FileId id);
    void do_write();
    bool room_for(std::int64_t bytes) const;

    std::function<void()> on_outcome_;
    std::chrono::milliseconds pause_{0};

    mutable std::mutex mutex_;
    std::condition_variable work_;     // for the thread
    std::condition_variable written_;  // by the thread
    bool usable_ = false;
    std::list<Write> writes_;  // the first may be under way
    bool writing_ = false;
    std::deque<FileId> reads_, removals_;
    std::vector<FileOutcome> outcomes_;
    std::int64_t waiting_bytes_ = 0;  // of writes_
    std::chrono::steady_clock::time_point deadline_ = {};
    std::string fault_;
    bool looks_ = false;
    bool ending_ = false;
    std::atomic<bool> stopped_{false};  // a read or write under way ends soon
    std::thread thread_;
};

}  // namespace fermata
