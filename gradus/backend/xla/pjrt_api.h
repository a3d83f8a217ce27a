/// The part of the PJRT C API that is used: the result of a plugin's GetPjrtApi(), its functions and their arguments.
/// These are declarations of our own for an interface that others define. A struct begins with its size, from which a
/// plugin of another minor version knows its fields; fields are only ever added at ends.
#pragma once
#include <cstddef>
#include <cstdint>

namespace gradus::pjrt {

inline constexpr int api_major = 0;
/// The oldest minor version with all functions that are used.
inline constexpr int oldest_minor = 40;

/// Types that a plugin keeps behind its pointers.
struct Error;
struct Event;
struct Client;
struct Device;
struct DeviceDescription;
struct Memory;
struct Executable;
struct LoadedExecutable;
struct Buffer;
struct ExecuteContext;
struct SerializedExecutable;

struct Extension {
  std::size_t struct_size;
  int type;
  Extension* next;
};
struct Head {
  std::size_t struct_size;
  Extension* extensions;
};

struct Version {
  Head head;
  int major, minor;
};

enum class Code : int {
  ok = 0,
  invalid_argument = 3,
  resource_exhausted = 8,
  unimplemented = 12,
  internal = 13,
};

struct ErrorDestroy {
  Head head;
  Error* error;
};
struct ErrorMessage {
  Head head;
  const Error* error;
  const char* message;
  std::size_t message_size;
};
struct ErrorGetCode {
  Head head;
  const Error* error;
  int code;
};

struct NamedValue {
  enum class Type : int { text = 0, int64, int64_list, float32, boolean };
  Head head;
  const char* name;
  std::size_t name_size;
  Type type;
  union {
    const char* text;
    std::int64_t int64;
    const std::int64_t* int64_list;
    float float32;
    bool boolean;
  };
  std::size_t value_size;
};

struct PluginInitialize {
  Head head;
};
struct PluginAttributes {
  Head head;
  const NamedValue* attributes;
  std::size_t num_attributes;
};

struct EventDestroy {
  Head head;
  Event* event;
};
struct EventIsReady {
  Head head;
  Event* event;
  bool is_ready;
};
struct EventAwait {
  Head head;
  Event* event;
};
struct EventOnReady {
  Head head;
  Event* event;
  void (*callback)(Error* error, void* argument);  // which owns the error
  void* argument;
};

struct ClientCreate {
  Head head;
  const NamedValue* options;
  std::size_t num_options;
  void* get_value;
  void* get_value_argument;
  void* put_value;
  void* put_value_argument;
  Client* client;
  void* try_get_value;
  void* try_get_value_argument;
};
struct ClientPlatformName {
  Head head;
  Client* client;
  const char* name;
  std::size_t name_size;
};
struct ClientPlatformVersion {
  Head head;
  Client* client;
  const char* version;
  std::size_t version_size;
};
struct ClientAddressableDevices {
  Head head;
  Client* client;
  Device* const* devices;
  std::size_t num_devices;
};
struct Program {
  Head head;
  char* code;
  std::size_t code_size;
  const char* format;
  std::size_t format_size;
};
struct ClientCompile {
  Head head;
  Client* client;
  const Program* program;
  const char* options;
  std::size_t options_size;
  LoadedExecutable* executable;
};

enum class Type : int { invalid = 0, pred, s8, s16, s32, s64, u8, u16, u32, u64, f16, f32, f64, bf16 };
enum class HostBufferSemantics : int { only_during_call = 0, until_transfer_completes, zero_copy, mutable_zero_copy };
struct TiledLayout {
  Head head;
  const std::int64_t* minor_to_major;
  std::size_t minor_to_major_size;
  const std::int64_t* tile_dims;
  const std::size_t* tile_dim_sizes;
  std::size_t num_tiles;
};
struct Strides {
  Head head;
  const std::int64_t* byte_strides;
  std::size_t num_byte_strides;
};
struct MemoryLayout {
  enum class Kind : int { tiled = 0, strides };
  Head head;
  union {
    TiledLayout tiled;
    Strides strides;
  };
  Kind kind;
};
struct BufferFromHostBuffer {
  Head head;
  Client* client;
  const void* data;
  Type type;
  const std::int64_t* dims;
  std::size_t num_dims;
  const std::int64_t* byte_strides;  // null: row-major
  std::size_t num_byte_strides;
  HostBufferSemantics semantics;
  Device* device;
  Memory* memory;
  MemoryLayout* device_layout;
  Event* done_with_host_buffer;
  Buffer* buffer;
};

struct DeviceGetDescription {
  Head head;
  Device* device;
  DeviceDescription* description;
};
struct DescriptionId {
  Head head;
  DeviceDescription* description;
  int id;
};
struct DescriptionKind {
  Head head;
  DeviceDescription* description;
  const char* kind;
  std::size_t kind_size;
};
struct DeviceMemoryStats {
  Head head;
  Device* device;
  std::int64_t bytes_in_use;
  std::int64_t peak_bytes_in_use;
  bool peak_bytes_in_use_is_set;
  std::int64_t num_allocs;
  bool num_allocs_is_set;
  std::int64_t largest_alloc_size;
  bool largest_alloc_size_is_set;
  std::int64_t bytes_limit;
  bool bytes_limit_is_set;
  std::int64_t bytes_reserved;
  bool bytes_reserved_is_set;
  std::int64_t peak_bytes_reserved;
  bool peak_bytes_reserved_is_set;
  std::int64_t bytes_reservable_limit;
  bool bytes_reservable_limit_is_set;
  std::int64_t largest_free_block_bytes;
  bool largest_free_block_bytes_is_set;
  std::int64_t pool_bytes;
  bool pool_bytes_is_set;
  std::int64_t peak_pool_bytes;
  bool peak_pool_bytes_is_set;
};

struct ExecutableDestroy {
  Head head;
  Executable* executable;
};
struct ExecutableSerialize {
  Head head;
  const Executable* executable;
  const char* bytes;
  std::size_t bytes_size;
  SerializedExecutable* serialized;
  void (*destroy)(SerializedExecutable* serialized);
};
struct ExecutableMemoryStats {
  Head head;
  Executable* executable;
  std::int64_t generated_code_bytes;
  std::int64_t argument_bytes;
  std::int64_t output_bytes;
  std::int64_t alias_bytes;
  std::int64_t temp_bytes;
  std::int64_t host_generated_code_bytes;
  std::int64_t host_argument_bytes;
  std::int64_t host_output_bytes;
  std::int64_t host_alias_bytes;
  std::int64_t host_temp_bytes;
  std::int64_t peak_bytes;  // of newer versions, which refuse a call without it
};
struct LoadedExecutableGetExecutable {
  Head head;
  LoadedExecutable* loaded;
  Executable* executable;
};
struct LoadedExecutableDestroy {
  Head head;
  LoadedExecutable* executable;
};
struct ExecutableDeserializeAndLoad {
  Head head;
  Client* client;
  const char* bytes;
  std::size_t bytes_size;
  LoadedExecutable* executable;
  const char* options;  // in place of the options that it was compiled with
  std::size_t options_size;
};
struct ExecuteOptions {
  Head head;
  void** send_callbacks;
  void** recv_callbacks;
  std::size_t num_send_ops;
  std::size_t num_recv_ops;
  int launch_id;
  const std::int64_t* non_donatable_inputs;
  std::size_t num_non_donatable_inputs;
  ExecuteContext* context;
  const char* call_location;
  std::size_t num_tasks;
  int* task_ids;
  std::int64_t* incarnation_ids;
};
struct LoadedExecutableExecute {
  Head head;
  LoadedExecutable* executable;
  ExecuteOptions* options;
  Buffer* const* const* argument_lists;  // [devices][arguments]
  std::size_t num_devices;
  std::size_t num_arguments;
  Buffer** const* output_lists;  // [devices][outputs]: to be filled
  Event** device_complete_events;
  Device* execute_device;
};

struct BufferDestroy {
  Head head;
  Buffer* buffer;
};
struct BufferIsDeleted {
  Head head;
  Buffer* buffer;
  bool is_deleted;
};
struct BufferCopyToDevice {
  Head head;
  Buffer* buffer;
  Device* device;
  Buffer* copy;
};
struct BufferToHostBuffer {
  Head head;
  Buffer* source;
  MemoryLayout* host_layout;  // null: that of the device
  void* destination;
  std::size_t destination_size;
  Event* event;
};
struct BufferReadyEvent {
  Head head;
  Buffer* buffer;
  Event* event;
};

/// A function that is not called.
using Unused = void (*)();
template <class Arguments> using Function = Error* (*)(Arguments*);

/// The table of a plugin, up to the last function that is used.
struct Api {
  Head head;
  Version version;

  void (*error_destroy)(ErrorDestroy*);
  void (*error_message)(ErrorMessage*);
  Function<ErrorGetCode> error_get_code;
  Function<PluginInitialize> plugin_initialize;
  Function<PluginAttributes> plugin_attributes;
  Function<EventDestroy> event_destroy;
  Function<EventIsReady> event_is_ready;
  Unused event_error;
  Function<EventAwait> event_await;
  Function<EventOnReady> event_on_ready;
  Function<ClientCreate> client_create;
  Unused client_destroy;
  Function<ClientPlatformName> client_platform_name;
  Unused client_process_index;
  Function<ClientPlatformVersion> client_platform_version;
  Unused client_devices;
  Function<ClientAddressableDevices> client_addressable_devices;
  Unused client_lookup_device;
  Unused client_lookup_addressable_device;
  Unused client_addressable_memories;
  Function<ClientCompile> client_compile;
  Unused client_default_device_assignment;
  Function<BufferFromHostBuffer> buffer_from_host_buffer;
  Function<DescriptionId> description_id;
  Unused description_process_index;
  Unused description_attributes;
  Function<DescriptionKind> description_kind;
  Unused description_debug_string;
  Unused description_to_string;
  Function<DeviceGetDescription> device_get_description;
  Unused device_is_addressable;
  Unused device_local_hardware_id;
  Unused device_addressable_memories;
  Unused device_default_memory;
  Function<DeviceMemoryStats> device_memory_stats;
  Unused memory_id;
  Unused memory_kind;
  Unused memory_debug_string;
  Unused memory_to_string;
  Unused memory_addressable_by_devices;
  Function<ExecutableDestroy> executable_destroy;
  Unused executable_name;
  Unused executable_num_replicas;
  Unused executable_num_partitions;
  Unused executable_num_outputs;
  Unused executable_size_of_generated_code;
  Unused executable_get_cost_analysis;
  Unused executable_output_memory_kinds;
  Unused executable_optimized_program;
  Function<ExecutableSerialize> executable_serialize;
  Function<LoadedExecutableDestroy> loaded_executable_destroy;
  Function<LoadedExecutableGetExecutable> loaded_executable_get_executable;
  Unused loaded_executable_addressable_devices;
  Unused loaded_executable_delete;
  Unused loaded_executable_is_deleted;
  Function<LoadedExecutableExecute> loaded_executable_execute;
  Function<ExecutableDeserializeAndLoad> executable_deserialize_and_load;
  Unused loaded_executable_fingerprint;
  Function<BufferDestroy> buffer_destroy;
  Unused buffer_element_type;
  Unused buffer_dimensions;
  Unused buffer_unpadded_dimensions;
  Unused buffer_dynamic_dimension_indices;
  Unused buffer_get_memory_layout;
  Unused buffer_on_device_size;
  Unused buffer_device;
  Unused buffer_memory;
  Unused buffer_delete;
  Function<BufferIsDeleted> buffer_is_deleted;
  Function<BufferCopyToDevice> buffer_copy_to_device;
  Function<BufferToHostBuffer> buffer_to_host_buffer;
  Unused buffer_is_on_cpu;
  Function<BufferReadyEvent> buffer_ready_event;
  Unused buffer_unsafe_pointer;
  Unused buffer_increase_external_reference_count;
  Unused buffer_decrease_external_reference_count;
  Unused buffer_opaque_device_memory_data_pointer;
  Unused copy_to_device_stream_destroy;
  Unused copy_to_device_stream_add_chunk;
  Unused copy_to_device_stream_total_bytes;
  Unused copy_to_device_stream_granule_size;
  Unused copy_to_device_stream_current_bytes;
  Unused topology_create;
  Unused topology_destroy;
  Unused topology_platform_name;
  Unused topology_platform_version;
  Unused topology_get_device_descriptions;
  Unused topology_serialize;
  Unused topology_attributes;
  Unused compile;
  Unused executable_output_element_types;
  Unused executable_output_dimensions;
  Unused buffer_copy_to_memory;
  Unused client_create_view_of_device_buffer;
  Unused executable_fingerprint;
  Unused client_topology_description;
  Function<ExecutableMemoryStats> executable_memory_stats;
};

}  // namespace gradus::pjrt
