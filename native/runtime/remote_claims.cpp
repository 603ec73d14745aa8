// Who computes what several servers need: a key in Redis that expires unless its server says that
// it goes on.
#include <utility>

#include "runtime/remote_files.h"

namespace fermata {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr const char* kClaimMs = "5000";
constexpr milliseconds kSayEvery{1000};  // that a claim goes on

// A claim that has expired may be another server's by now. Redis compares and changes at once only
// in a script; where it runs none, a claim lasts kClaimMs.
constexpr const char* kUnlinkOwn =
    "if redis.call('GET',KEYS[1])==ARGV[1] then return redis.call('UNLINK',KEYS[1]) end return 0";
constexpr const char* kExtendOwn =
    "if redis.call('GET',KEYS[1])==ARGV[1] then return redis.call('PEXPIRE',KEYS[1],ARGV[2]) end "
    "return 0";

}  // namespace

std::string RemoteFiles::claim_key(std::uint64_t what) const {
    return prefix_ + "claim:" + hex(what);
}

// What was found is taken before a claim is told: what is claimed may be there.
Claim RemoteFiles::claim(std::uint64_t what) {
    const std::lock_guard lock(found_mutex_);
    if (!reachable_) return Claim::kNobody;
    const auto [found, is_new] = claims_.try_emplace(what);
    const Claiming& claiming = found->second;
    if (is_new) look_around_soon();
    const bool may_be_there = claiming.state == Claim::kOurs && !found_.empty();
    return claiming.over || may_be_there ? Claim::kAsked : claiming.state;
}

void RemoteFiles::give_back(std::uint64_t what) {
    const std::lock_guard lock(found_mutex_);
    const auto found = claims_.find(what);
    if (found == claims_.end()) return;
    found->second.over = true;
    look_around_soon();
}

// Those that go on are kept from expiring, also while a long sequence is written or read.
bool RemoteFiles::say_claims(std::string& why) {
    std::vector<std::uint64_t> due;
    {
        const std::lock_guard lock(found_mutex_);
        for (auto& [what, claiming] : claims_) {
            if (claiming.state != Claim::kOurs || claiming.over) continue;
            if (Clock::now() - claiming.said < kSayEvery) continue;
            claiming.said = Clock::now();
            due.push_back(what);
        }
    }
    for (const std::uint64_t what : due) {
        Redis::Reply reply;
        if (!redis_->call({"EVAL", kExtendOwn, "1", claim_key(what), me_, kClaimMs}, reply)) {
            lose(redis_->why(), why);
            return false;
        }
        if (reply.is_error) note_fault(place_ + ": " + reply.text);
        if (reply.is_error || reply.number != 0) continue;
        const std::lock_guard lock(found_mutex_);
        const auto found = claims_.find(what);
        if (found != claims_.end()) found->second.state = Claim::kOthers;
    }
    return true;
}

// What became of those that are asked for or over; told by tell_claims, behind what other servers
// have written until then.
RemoteFiles::Claims RemoteFiles::ask_claims(std::string& why) {
    Claims claims;
    {
        const std::lock_guard lock(found_mutex_);
        for (const auto& [what, claiming] : claims_)
            if (claiming.over || claiming.state != Claim::kOurs) claims.emplace(what, claiming);
    }
    for (auto& [what, claiming] : claims) {
        Redis::Reply reply;
        const std::string key = claim_key(what);
        const bool ends = claiming.over && claiming.state == Claim::kOurs;
        bool answered = true;
        if (ends)
            answered = redis_->call({"EVAL", kUnlinkOwn, "1", key, me_}, reply);
        else if (!claiming.over)
            answered = redis_->call({"SET", key, me_, "NX", "PX", kClaimMs}, reply);
        if (!answered) {
            lose(redis_->why(), why);
            return {};
        }
        if (reply.is_error) note_fault(place_ + ": " + reply.text);
        if (claiming.over) continue;
        claiming.said = Clock::now();
        claiming.state = reply.is_error  ? Claim::kNobody
                         : reply.is_null ? Claim::kOthers
                                         : Claim::kOurs;
    }
    return claims;
}

void RemoteFiles::tell_claims(const Claims& claims) {
    bool news = false;
    {
        const std::lock_guard lock(found_mutex_);
        for (const auto& [what, claiming] : claims) {
            const auto found = claims_.find(what);
            if (found == claims_.end()) continue;
            if (claiming.over) {
                claims_.erase(found);
                continue;
            }
            news = news || found->second.state != claiming.state;
            found->second.state = claiming.state;
            found->second.said = claiming.said;
        }
    }
    if (news) wake();
}

}  // namespace fermata
