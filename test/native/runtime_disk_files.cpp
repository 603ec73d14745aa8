// Files in a real directory, and the thread that writes them. Also run under ThreadSanitizer.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include "check.h"
#include "fake_backend.h"
#include "runtime/disk_files.h"
#include "runtime/engine_loop.h"
#include "scheduler_world.h"

using namespace fermata;
using namespace fermata::testing;
namespace fs = std::filesystem;

namespace {

constexpr FileKind kKind{.fingerprint = 7, .longest = 512};
constexpr std::int64_t kPlenty = std::int64_t{1} << 30;

class Folder {
   public:
    Folder() {
        std::string pattern = fs::temp_directory_path() / "fermata-files-XXXXXX";
        CHECK(::mkdtemp(pattern.data()) != nullptr);
        root_ = pattern;
    }
    ~Folder() {
        fs::permissions(root_, fs::perms::owner_all);
        std::error_code ignored;
        fs::remove_all(root_, ignored);
    }
    // Not there yet.
    std::string path() const { return root_ / "inner" / "cache"; }
    std::vector<fs::path> files(const std::string& ending = ".kv") const {
        std::vector<fs::path> found;
        for (const auto& entry : fs::directory_iterator(path()))
            if (entry.path().extension() == ending) found.push_back(entry.path());
        return found;
    }

   private:
    fs::path root_;
};

SavedCells cells_of(std::span<const Token> tokens) {
    SavedCells cells(tokens.size() * 16, static_cast<std::int32_t>(tokens.size()));
    for (std::size_t i = 0; i < cells.size(); ++i)
        cells.page(0)[i] = static_cast<std::byte>(tokens[i / 16] + static_cast<Token>(i));
    return cells;
}

// After half of them, and after a quarter.
std::vector<SavedCells> forks_of(std::span<const Token> tokens) {
    return {cells_of(tokens.first(tokens.size() / 2)), cells_of(tokens.first(tokens.size() / 4))};
}

std::vector<std::byte> bytes_of(const SavedCells& cells) {
    std::vector<std::byte> bytes;
    for (std::size_t page = 0; page < cells.page_count(); ++page)
        bytes.insert(bytes.end(), cells.page(page).begin(), cells.page(page).end());
    return bytes;
}

bool same_bytes(const SavedCells& a, const SavedCells& b) {
    return std::ranges::equal(bytes_of(a), bytes_of(b)) && a.length() == b.length();
}

// Files with their thread, and what became of everything.
class Disk {
   public:
    explicit Disk(const std::string& path, FileKind kind = kKind) : files(path, kind) {
        files.start([this] {
            const std::lock_guard lock(mutex_);
            told_ += 1;
            condition_.notify_all();
        });
    }
    FileOutcome next() {
        std::unique_lock lock(mutex_);
        CHECK(condition_.wait_for(lock, std::chrono::seconds(60), [this] { return told_ > 0; }));
        told_ -= 1;
        lock.unlock();
        while (outcomes_.empty())
            for (FileOutcome& outcome : files.take_outcomes())
                outcomes_.push_back(std::move(outcome));
        FileOutcome outcome = std::move(outcomes_.front());
        outcomes_.erase(outcomes_.begin());
        return outcome;
    }
    void write(FileId id, const std::vector<Token>& tokens) {
        files.write(id, Salt{id} * 3, tokens, cells_of(tokens), forks_of(tokens));
        const FileOutcome outcome = next();
        CHECK_EQ(outcome.id, id);
        CHECK(outcome.event == FileEvent::kWritten);
    }

   private:
    std::mutex mutex_;
    std::condition_variable condition_;
    int told_ = 0;
    std::vector<FileOutcome> outcomes_;

   public:
    DiskFiles files;
};

void flip(const fs::path& path, std::int64_t at) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(at);
    const int byte = file.get();
    file.seekp(at);
    file.put(static_cast<char>(byte ^ 4));
}

}  // namespace

// Pages of odd sizes, some of which are another sequence's.
TEST(pages_come_back_as_they_were_written) {
    const Folder folder;
    Disk disk(folder.path());
    const auto filled = [](SavedCells cells, int seed) {
        for (std::size_t page = 0; page < cells.page_count(); ++page)
            for (std::size_t i = 0; !cells.is_shared(page) && i < cells.page(page).size(); ++i)
                cells.page(page)[i] =
                    static_cast<std::byte>(i * 7 + page + static_cast<std::size_t>(seed));
        return cells;
    };
    const PagedSize size{.head = 37, .position = 13, .length = 200};
    const SavedCells first = filled(SavedCells(size, {}, 0), 1);
    const SavedCells second = filled(SavedCells(size, first, 150), 2);
    for (const auto& [id, cells] : {std::pair{FileId{1}, first}, std::pair{FileId{2}, second}}) {
        disk.files.write(id, 0, words(1, 200), cells, {});
        CHECK(disk.next().event == FileEvent::kWritten);
        disk.files.read(id);
        const FileOutcome read = disk.next();
        CHECK(read.event == FileEvent::kRead);
        CHECK(same_bytes(read.cells, cells));
    }
}

TEST(what_is_written_is_read_and_found_again) {
    const Folder folder;
    const auto tokens = words(1, 100);
    {
        Disk disk(folder.path());
        disk.write(5, tokens);
        CHECK_EQ(folder.files().size(), 1u);
        struct stat about{};
        CHECK_EQ(::stat(folder.files()[0].c_str(), &about), 0);
        CHECK_EQ(about.st_mode & 0777u, 0600u);
        CHECK_EQ(::stat(folder.path().c_str(), &about), 0);
        CHECK_EQ(about.st_mode & 0777u, 0700u);
        disk.files.read(5);
        const FileOutcome outcome = disk.next();
        CHECK(outcome.event == FileEvent::kRead);
        CHECK(same_bytes(outcome.cells, cells_of(tokens)));
        CHECK_EQ(outcome.forks.size(), 2u);
        for (std::size_t i = 0; i < 2; ++i)
            CHECK(same_bytes(outcome.forks[i], forks_of(tokens)[i]));
    }
    Disk disk(folder.path());
    const auto found = disk.files.take_found();
    CHECK_EQ(found.size(), 1u);
    CHECK_EQ(found[0].id, FileId{5});
    CHECK_EQ(found[0].salt, Salt{15});
    CHECK(found[0].tokens == tokens);
    CHECK(found[0].forks == std::vector<std::int32_t>({50, 25}));
    CHECK_EQ(found[0].bytes, static_cast<std::int64_t>(fs::file_size(folder.files()[0])));
    disk.files.remove(5);
    disk.write(6, tokens);  // behind the removal
    CHECK_EQ(folder.files().size(), 1u);
}

TEST(files_that_are_bad_are_dropped_and_counted) {
    const auto tokens = words(1, 100);
    const std::int64_t size = kFileHeaderBytes + 100 * 4 + 2 * kFileForkBytes + 175 * 16;
    for (std::int64_t at = 0; at < size; at += at < kFileHeaderBytes ? 1 : 11) {
        const Folder folder;
        Disk disk(folder.path());
        disk.write(1, tokens);
        flip(folder.files()[0], at);
        disk.files.read(1);
        CHECK(disk.next().event == FileEvent::kDamaged);
        CHECK_EQ(folder.files().size(), 0u);
    }
    for (std::int64_t length = 0; length < size; length += 97) {
        const Folder folder;
        {
            Disk disk(folder.path());
            disk.write(1, tokens);
        }
        fs::resize_file(folder.files()[0], static_cast<std::uintmax_t>(length));
        Disk disk(folder.path());
        CHECK_EQ(disk.files.damaged_when_found(), 1);
        CHECK(disk.files.take_found().empty());
        CHECK_EQ(folder.files().size(), 0u);
    }
}

TEST(files_of_another_model_or_with_too_many_tokens_are_dropped) {
    const Folder folder;
    {
        Disk disk(folder.path());
        disk.write(1, words(1, 100));
        disk.write(2, words(2, 200));
    }
    {
        const Disk disk(folder.path(), {.fingerprint = 7, .longest = 150});
        CHECK_EQ(disk.files.damaged_when_found(), 1);
    }
    const Disk disk(folder.path(), {.fingerprint = 8, .longest = 512});
    CHECK_EQ(disk.files.foreign(), 1);
    CHECK_EQ(folder.files().size(), 0u);
}

TEST(what_was_not_finished_is_cleared_away_and_other_files_are_left_alone) {
    const Folder folder;
    fs::create_directories(folder.path());
    std::ofstream(folder.path() + "/0000000000000009.part") << "half";
    std::ofstream(folder.path() + "/notes.txt") << "mine";
    std::ofstream(folder.path() + "/mine.kv") << "mine";
    fs::create_directory(folder.path() + "/000000000000000a.kv");
    const Disk disk(folder.path());
    CHECK(!fs::exists(folder.path() + "/0000000000000009.part"));
    CHECK(fs::exists(folder.path() + "/notes.txt"));
    CHECK(fs::exists(folder.path() + "/mine.kv"));
}

TEST(a_directory_belongs_to_one_at_a_time) {
    const Folder folder;
    const Disk first(folder.path());
    Disk second(folder.path());
    CHECK(!second.files.has_room(1));
    CHECK(second.files.fault().find("another process uses it") != std::string::npos);
}

TEST(a_directory_that_cannot_be_made_has_no_room) {
    const Folder folder;
    fs::create_directories(fs::path(folder.path()).parent_path());
    std::ofstream(folder.path()) << "a file";
    Disk disk(folder.path());
    CHECK(!disk.files.has_room(1));
    CHECK(!disk.files.fault().empty());
}

TEST(a_disk_that_refuses_is_told_of) {
    const Folder folder;
    Disk disk(folder.path());
    // In the way of what will be written, whoever runs the test.
    fs::create_directory(folder.path() + "/0000000000000001.part");
    disk.files.write(1, 0, words(1, 100), cells_of(words(1, 100)), {});
    CHECK(disk.next().event == FileEvent::kNotWritten);
    CHECK(!disk.files.fault().empty());
    disk.files.read(44);
    CHECK(disk.next().event == FileEvent::kUnreadable);
}

TEST(what_waits_to_be_written_is_read_from_memory) {
    const Folder folder;
    Disk disk(folder.path());
    for (FileId id = 1; id <= 20; ++id) {
        const auto tokens = words(static_cast<std::uint32_t>(id), 100);
        disk.files.write(id, Salt{id} * 3, tokens, cells_of(tokens), forks_of(tokens));
        disk.files.read(id);
        if (id % 3 == 0) disk.files.remove(id);
    }
    int read = 0;
    for (int seen = 0; seen < 20 + 14; ++seen) {
        const FileOutcome outcome = disk.next();
        if (outcome.event != FileEvent::kRead) continue;
        read += 1;
        CHECK(same_bytes(outcome.cells,
                         cells_of(words(static_cast<std::uint32_t>(outcome.id), 100))));
    }
    CHECK(read >= 14);
}

TEST(ending_with_everything_under_way) {
    for (int round = 0; round < 20; ++round) {
        const Folder folder;
        {
            Disk disk(folder.path());
            for (FileId id = 1; id <= 30; ++id) {
                const auto tokens = words(static_cast<std::uint32_t>(id), 500);
                disk.files.write(id, Salt{id} * 3, tokens, cells_of(tokens), forks_of(tokens));
                if (id % 2 == 0) disk.files.read(id / 2);
            }
            if (round % 2 == 0) {
                disk.files.close_within(std::chrono::seconds(60));
                disk.files.flush();
            }
        }
        const DiskFiles after(folder.path(), kKind);
        CHECK_EQ(after.damaged_when_found(), 0);
        if (round % 2 == 0) CHECK_EQ(folder.files().size(), 30u);
    }
}

namespace {

// A loop over a fake backend with files, used as a server does.
struct Loop {
    std::mutex mutex;
    std::condition_variable condition;
    bool woken = false;
    EngineLoop loop;

    explicit Loop(const std::string& path)
        : loop(
              std::make_unique<FakeBackend>(streams(4)),
              {.scheduler = {.parallel = 2,
                             .step_token_budget = 64,
                             .ram_limit = 3000,
                             .disk_limit = kPlenty}},
              [this] {
                  const std::lock_guard lock(mutex);
                  woken = true;
                  condition.notify_all();
              },
              [] {}, std::make_unique<DiskFiles>(path, kKind)) {}

    // Tokens that were sampled, and those of the prompt that were found.
    std::pair<std::vector<Token>, std::int32_t> run(SequenceId id, std::vector<Token> prompt) {
        CHECK(loop.submit({.id = id, .prompt = std::move(prompt), .limits = {.max_tokens = 8}}) ==
              EngineLoop::Accept::kOk);
        std::vector<Token> sampled;
        while (true) {
            std::unique_lock lock(mutex);
            CHECK(condition.wait_for(lock, std::chrono::seconds(60), [this] { return woken; }));
            woken = false;
            lock.unlock();
            for (const Event& event : loop.take_events().events) {
                sampled.insert(sampled.end(), event.tokens.begin(), event.tokens.end());
                CHECK(event.kind != EventKind::kFailed);
                if (event.kind == EventKind::kFinished) return {sampled, event.usage.cached_tokens};
            }
        }
    }
};

}  // namespace

TEST(a_closed_engine_goes_on_in_the_next_one) {
    const Folder folder;
    const FakeBackend reference(streams(4));
    {
        Loop first(folder.path());
        for (std::uint32_t seed = 1; seed <= 8; ++seed)
            first.run(seed, words(seed, 150));
        first.loop.close(std::chrono::seconds(60));
        first.loop.close();
    }
    CHECK_EQ(folder.files(".part").size(), 0u);
    Loop second(folder.path());
    for (std::uint32_t seed = 1; seed <= 8; ++seed) {
        auto prompt = joined(words(seed, 150), words(90, 10));
        const auto [sampled, cached] = second.run(seed, prompt);
        CHECK(cached >= 150);  // what was sampled then may go on as this prompt does
        for (const Token token : sampled) {
            CHECK_EQ(token, reference.next_token(prompt));
            prompt.push_back(token);
        }
    }
}

TEST(closing_while_sequences_run_and_files_are_read) {
    const Folder folder;
    for (int round = 0; round < 20; ++round) {
        Loop engine(folder.path());
        for (SequenceId id = 1; id <= 12; ++id)
            engine.loop.submit({.id = id,
                                .prompt = words(static_cast<std::uint32_t>(id), 150),
                                .limits = {.max_tokens = 8}});
        std::this_thread::sleep_for(std::chrono::milliseconds(round));
        std::thread other([&] { engine.loop.close(); });
        engine.loop.close(std::chrono::seconds(round % 2));
        other.join();
    }
}

TEST_MAIN()
