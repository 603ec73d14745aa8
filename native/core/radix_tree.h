// The token paths of all slots, common prefixes kept together.
//
// A node stands for a run of tokens [begin, end) that all its slots have in common. It stores no
// tokens: the run is read from the path of any of its slots. A node exists only where paths part or
// end, so there are at most two per slot, and a slot that is alone grows without touching the tree.
//
// A path belongs to a salt. Paths of different salts share nodes and are never matched.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/slot_set.h"
#include "core/types.h"

namespace fermata {

class RadixTree {
   public:
    // Slots 0 .. slot_count - 1, at most kMaxSlots + kMaxLeft, all with empty paths.
    explicit RadixTree(std::int32_t slot_count);

    // Valid until the slot's path changes.
    std::span<const Token> path(SlotId slot) const;

    Salt salt(SlotId slot) const;
    // Of an empty path, or the same again.
    void set_salt(SlotId slot, Salt salt);
    // The empty path of `to` becomes the first `length` tokens of another slot's, with its salt.
    void share(SlotId from, SlotId to, std::int32_t length);

    // Appends to the path of the slot. `tokens` may be part of another slot's path, not of its own.
    // Amortized O(1) a token when no other slot has the same whole path.
    void extend(SlotId slot, std::span<const Token> tokens);
    // Keeps the first `length` tokens of the path; length <= path(slot).size().
    void truncate(SlotId slot, std::int32_t length);

    // shared[slot] = length of the longest common prefix of `prompt` and the slot's path, for every
    // slot; 0 for those of another salt. O(prompt + slots), however many slots share the prefix.
    void match(std::span<const Token> prompt, Salt salt, std::span<std::int32_t> shared) const;

    // How much of the slot's path others of the set begin with too.
    std::int32_t shared_with(SlotId slot, const SlotSet& others) const;

    std::int32_t node_count() const;
    // Empty when sound, else what is wrong.
    std::string check_integrity() const;

   private:
    struct Node;
    struct Child {
        Token first;
        std::unique_ptr<Node> node;
    };
    struct Node {
        Node* parent = nullptr;
        std::size_t begin = 0;
        std::size_t end = 0;
        SlotSet slots;
        std::vector<Child> children;  // different first tokens; at most one per slot

        Node* child(Token first) const;
    };

    std::vector<Token>& path_of(SlotId slot) { return paths_[static_cast<std::size_t>(slot)]; }
    Node*& tail_of(SlotId slot) { return tails_[static_cast<std::size_t>(slot)]; }
    std::span<const Token> run(const Node& node) const;
    Node* add_child(Node* parent, Token first, std::size_t begin, std::size_t end);
    void remove_child(Node* child);
    void split(Node* node, std::size_t at);
    void join_only_child(Node* node);
    std::string check_node(const Node& node) const;

    std::vector<std::vector<Token>> paths_;
    std::vector<Salt> salts_;
    Node root_;
    std::vector<Node*> tails_;  // the node where the slot's path ends; the root if empty
};

}  // namespace fermata
