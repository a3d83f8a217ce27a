/// Object files: a compiled graph as machine code that needs nothing of the library, with a header in C.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>
#include "gradus/base/rooms.h"
#include "gradus/graph/graph.h"

namespace gradus {

/// A variable part of the state, which the program owns: a weight, a slot of an optimizer, a count.
struct ObjectField {
  std::string name;  // as the Variable has it
  Spec spec;
  Ref<Buffer> now;           // its initial value
  bool is_constant = false;  // a captured tensor, which no step writes
};

/// A step of an object file. All sizes are known, and the graph names no device.
struct ObjectStep {
  /// The binding of an input or output of the graph.
  struct Input {
    enum class Kind { argument, field, key, constant } kind = Kind::constant;
    std::size_t index = 0;  // of arguments, of the fields of all
    Ref<Buffer> constant = {};
  };
  struct Result {
    int output = 0;
    Spec spec;
  };
  std::string name;   // of the function in C
  std::string title;  // among several: its own part of the name, which opens its failures
  Graph graph;
  std::vector<std::string> disable = {};  // passes, as in CompileOptions
  std::int64_t max_bytes = 0;             // budget for temporaries
  std::vector<Input> inputs;
  std::vector<Spec> arguments;
  std::vector<std::pair<std::size_t, int>> assigned;  // fields, and the outputs that they take
  std::vector<Result> results;

  bool draws() const;  // random numbers
};

/// Steps that become one object file, and have one state.
struct ObjectSteps {
  std::string name;               // of the state, of NAME_init and NAME_supported
  std::vector<ObjectStep> steps;  // at least one
  std::vector<ObjectField> fields;
  std::uint64_t random_state = 0;
  std::string instruction_set = {};  // as in ObjectOptions (function/object_files.h)
  std::string target = {};           // likewise
  std::string weights_file = {};     // if it has a name, it holds the initial values in place of the object
  std::string declarations = {};     // in C, for the end of the header
};

struct ObjectText {
  std::string object, header;
  std::string weights = {};  // the state up to the memory to work in, if they are in a file of their own
};

/// InvalidArgument that names the op, if something of the graph cannot come along. Unavailable without binutils.
ObjectText make_object(const ObjectSteps& all);

/// A kind of machine that object files can be made for.
struct ObjectTarget {
  std::string name;                           // such as "aarch64-linux-gnu"
  std::vector<std::string> instruction_sets;  // those to choose from
  bool is_here = false;                       // its programs run on this machine
  std::string problem = {};                   // why none can be made; empty if they can
};
/// That of this machine first.
std::vector<ObjectTarget> object_targets();

/// A Variable's name as the header of an object file tells it: in one line of a comment.
std::string name_in_header(const std::string& name);

/// The fields of a state as the header of an object file tells them.
struct StateField {
  std::string name;  // by name_in_header
  Spec spec;
  std::int64_t offset = 0;
};
struct StateLayout {
  std::vector<StateField> fields;
  std::int64_t random_state = -1;  // its offset; -1: the step draws no random numbers
  std::int64_t bytes = 0;
};
/// DataError if the text is no such header.
StateLayout state_layout(const std::string& header);

}  // namespace gradus
