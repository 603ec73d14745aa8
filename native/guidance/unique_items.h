// Keeps masks from repeating an item in arrays whose items must all differ: no grammar can, since
// it would have to remember all earlier items.
//
// Such an array is known by its first item: the grammar allows one there that it allows in no other
// array, or forbids one (unique_items.cpp names them). No mask lets it through.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/types.h"
#include "guidance/unique_reader.h"
#include "guidance/unique_vocabulary.h"

namespace fermata {

// Belongs to one matcher.
class UniqueItems {
   public:
    // How many of the tokens the grammar allows next, whatever the items are.
    using Probe = std::function<std::size_t(const std::vector<Token>& tokens)>;

    // `vocabulary` outlives this object.
    UniqueItems(const UniqueVocabulary& vocabulary, Probe probe);

    // A grammar has such arrays.
    static bool are_in(const std::string& lark);

    // Before the grammar consumes the token.
    void consume(Token token);
    // After the grammar went back: these tokens are left of all that were consumed.
    void rollback(const std::vector<Token>& consumed);
    // Takes out of the grammar's mask what would repeat an item, or could only go on to do so.
    // Something is left.
    void filter(std::vector<std::uint32_t>& mask);
    // Of a token that the grammar allows next: filter() leaves it.
    bool allows(Token token);
    // Neither filter() nor allows() has anything to say of the token.
    bool is_idle(Token token) const;

   private:
    static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

    // The `[` of such an array.
    struct Opening {
        std::size_t token;
        std::size_t offset;
        const std::string* marker;
        bool is_outermost;
        std::size_t closed = kNone;  // tokens up to its end; of outermost ones
    };
    struct Branch {
        bool reachable = false;  // the current item can become the earlier one
        std::size_t alive = 0;   // up to here in the plain form, it can still become another one
        std::size_t item = kNone;
        std::size_t items = 0;
    };
    // An earlier item that begins like the current one.
    struct Rival {
        std::size_t frame;
        std::size_t value;
        Branch branch = {};
    };
    struct Node;

    const std::string* marker_at(std::string_view text);
    bool takes(const std::string& text);
    std::string_view plain(const Rival& rival) const;
    void add_rivals(std::vector<Rival>& rivals, std::size_t frame, std::string_view pending);
    std::vector<Node> nodes(const Rival& rival) const;
    Branch find_branch(const std::vector<Rival>& rivals, const Rival& rival,
                       const std::string& pending);
    bool leaves(const std::vector<Rival>& rivals, const Rival& rival, const Node& node,
                const std::string& before);
    bool can_differ(const std::vector<Rival>& rivals, std::size_t frame) const;
    bool ends_otherwise(std::size_t frame, const std::string& pending);
    bool is_alive(std::string_view pending);
    void forbid(std::vector<std::uint32_t>& mask, const Rival& rival) const;
    void check(std::vector<std::uint32_t>& mask, const std::vector<Token>& tokens);
    void check_general(std::vector<std::uint32_t>& mask, bool is_narrow);
    void find_current_rivals();

    const UniqueVocabulary& vocabulary_;
    Probe probe_;
    UniqueReader reader_ = {};
    UniqueReader::Mark mark_ = {};
    std::vector<Opening> openings_ = {};
    std::size_t count_ = 0;    // tokens consumed
    bool has_rivals_ = false;  // those of the current place are found
    std::vector<Rival> rivals_ = {};
    std::vector<Branch> branches_ = {};  // by value
};

}  // namespace fermata
