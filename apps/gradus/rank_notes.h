/// Notes of ranks to their launcher (gradus/base/launcher_note.h), in a file in memory that ends with the launcher.
#pragma once
#include <string>

namespace gradus::command {

class RankNotes {
 public:
  RankNotes();
  ~RankNotes();
  RankNotes(const RankNotes&) = delete;

  /// The path by which processes of this user open the file; empty if there is none.
  std::string path() const;
  /// True if ranks have trained, and no rank has asked for its number.
  bool is_of_strangers() const;

 private:
  int descriptor_;
};

}  // namespace gradus::command
