// Sequences in Redis or Valkey, shared by the servers that have the same model, options and build.
//
// Each sequence is written under a name of its own, in pieces that expire, and announced with its
// head (sequence_file.h) in a stream. Every server reads that stream, so that it knows what there
// is without asking, and fetches the pieces when a prompt continues them. A server deletes what it
// has written, and never what others have.
//
//   fermata:<fingerprint>:log         stream of {name, head}
//   fermata:<fingerprint>:<name>:<n>  piece n of cells and forks
//   fermata:<fingerprint>:claim:<n>   the server that computes the beginning with this number. It
//                                     expires soon unless that server lives and says so.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "runtime/queued_files.h"
#include "runtime/redis.h"

namespace fermata {

class RemoteFiles final : public QueuedFiles {
   public:
    // Connects on the thread: what cannot be reached has no room until it can.
    RemoteFiles(RedisAddress address, FileKind kind);
    ~RemoteFiles() override;

    std::vector<FoundFile> take_found() override;
    double read_ms(std::int64_t bytes) const override;
    Claim claim(std::uint64_t what) override;
    void give_back(std::uint64_t what) override;
    std::int64_t foreign() const override { return foreign_.load(); }
    std::int64_t damaged_when_found() const override { return damaged_.load(); }

   private:
    struct Known {
        std::string name;
        std::vector<std::byte> head;
        bool own = false;
    };
    struct Claiming {
        Claim state = Claim::kAsked;
        bool over = false;                           // given back
        std::chrono::steady_clock::time_point said;  // that it goes on
    };
    using Claims = std::map<std::uint64_t, Claiming>;

    FileFault store(const Write& write, std::string& why) override;
    FileFault load(FileId id, SavedCells& cells, std::vector<SavedCells>& forks,
                   std::string& why) override;
    void erase(FileId id) override;
    void look_around() override;
    bool look(std::string& why);
    bool look_between_pieces(std::string& why);

    FileFault put(const Known& file, const Write& write, std::string& why);
    bool connected();
    FileFault lose(const std::string& what, std::string& why);
    bool keep_log(std::string& why);
    void read_log(std::string& why);
    void take_in(const std::string& name, const std::string& head);
    static std::string hex(std::uint64_t number);
    std::string key(const std::string& name) const { return prefix_ + name; }
    void took(std::int64_t bytes, std::chrono::steady_clock::time_point since);

    // remote_claims.cpp
    std::string claim_key(std::uint64_t what) const;
    bool say_claims(std::string& why);
    Claims ask_claims(std::string& why);
    void tell_claims(const Claims& claims);

    const RedisAddress address_;
    const FileKind kind_;
    const std::string place_, prefix_, me_;

    // Of the thread.
    std::unique_ptr<Redis> redis_;
    std::chrono::steady_clock::time_point next_try_ = {};
    std::chrono::milliseconds pause_;
    std::chrono::steady_clock::time_point looked_ = {};
    std::string seen_ = "0";  // of the stream
    std::map<FileId, Known> known_;
    std::set<std::string> names_;  // of known_ and gone_
    std::deque<std::string> gone_;
    FileId next_found_ = kFoundLater;

    std::mutex found_mutex_;
    std::vector<FoundFile> found_;
    bool reachable_ = false;
    Claims claims_;
    std::atomic<std::int64_t> foreign_{0}, damaged_{0};
    std::atomic<double> bytes_per_ms_{0};
};

}  // namespace fermata
