// A grammar and where one sequence stands in it. guidance/ and llama/ implement both; tests have a
// fake. No call throws.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/types.h"

namespace fermata {

// Where a search for an end stands.
struct Closing {
    bool done = true;                               // false: its work was used up before
    std::optional<std::vector<Token>> tokens = {};  // behind which the text may end; none found
};

// Belongs to one sequence. Any thread may call it, one at a time. After a call has failed, error()
// says why and every further call fails.
class Matcher {
   public:
    virtual ~Matcher() = default;

    // Writes which tokens may come next (token_mask.h). End tokens are among them when the text may
    // end here, and alone when stopped(). `mask` is resized to the vocabulary.
    virtual bool compute_mask(std::vector<std::uint32_t>& mask) = 0;
    // Advances by one token; by an end token where the text may end.
    virtual bool consume(Token token) = 0;
    // Goes back by the last `count` tokens consumed.
    virtual bool rollback(std::size_t count) = 0;
    // How many of `tokens` could be consumed in order, whatever way their text is cut into tokens.
    // Always 0 where going back costs too much: then nothing is drafted.
    virtual std::size_t accepted(std::span<const Token> tokens) = 0;
    // The tokens that come next whatever is sampled; empty when there is a choice. Does not
    // advance.
    virtual std::vector<Token> forced() = 0;
    // Searches for tokens behind which the text may end, as few as are found and at most `most`.
    // Each look at the grammar lowers `work` by one. At 0 the search stops and is not done: the
    // same call goes on with it, and no other may come before it is done. Does not advance.
    virtual Closing closing(std::size_t most, std::size_t& work) = 0;
    // The text may end here.
    virtual bool accepting() = 0;
    // The text is complete: nothing but an end token can follow, or one was consumed.
    virtual bool stopped() = 0;
    virtual std::string error() = 0;  // "" while there is none
};

// Compiled, immutable, safe from every thread.
class Grammar {
   public:
    virtual ~Grammar() = default;
    // At its beginning. nullptr: out of memory.
    virtual std::unique_ptr<Matcher> make_matcher() const = 0;
    virtual std::size_t bytes() const = 0;  // about what it keeps in memory
};

}  // namespace fermata
