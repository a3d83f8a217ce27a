/// Our declarations of the PJRT C API against the header of its makers: compiled, not run, in `make test-full`.
#include <cstddef>
#include "gradus/backend/xla/pjrt_api.h"
#include <xla/pjrt/c/pjrt_c_api.h>

namespace ours = gradus::pjrt;

static_assert(sizeof(ours::ErrorDestroy) == sizeof(PJRT_Error_Destroy_Args));
static_assert(offsetof(ours::ErrorDestroy, error) == offsetof(PJRT_Error_Destroy_Args, error));
static_assert(sizeof(ours::ErrorMessage) == sizeof(PJRT_Error_Message_Args));
static_assert(offsetof(ours::ErrorMessage, error) == offsetof(PJRT_Error_Message_Args, error));
static_assert(offsetof(ours::ErrorMessage, message) == offsetof(PJRT_Error_Message_Args, message));
static_assert(offsetof(ours::ErrorMessage, message_size) == offsetof(PJRT_Error_Message_Args, message_size));
static_assert(sizeof(ours::ErrorGetCode) == sizeof(PJRT_Error_GetCode_Args));
static_assert(offsetof(ours::ErrorGetCode, error) == offsetof(PJRT_Error_GetCode_Args, error));
static_assert(offsetof(ours::ErrorGetCode, code) == offsetof(PJRT_Error_GetCode_Args, code));
static_assert(sizeof(ours::NamedValue) == sizeof(PJRT_NamedValue));
static_assert(offsetof(ours::NamedValue, name) == offsetof(PJRT_NamedValue, name));
static_assert(offsetof(ours::NamedValue, name_size) == offsetof(PJRT_NamedValue, name_size));
static_assert(offsetof(ours::NamedValue, type) == offsetof(PJRT_NamedValue, type));
static_assert(offsetof(ours::NamedValue, text) == offsetof(PJRT_NamedValue, string_value));
static_assert(offsetof(ours::NamedValue, int64) == offsetof(PJRT_NamedValue, int64_value));
static_assert(offsetof(ours::NamedValue, value_size) == offsetof(PJRT_NamedValue, value_size));
static_assert(sizeof(ours::PluginAttributes) == sizeof(PJRT_Plugin_Attributes_Args));
static_assert(offsetof(ours::PluginAttributes, attributes) == offsetof(PJRT_Plugin_Attributes_Args, attributes));
static_assert(offsetof(ours::PluginAttributes, num_attributes) ==
              offsetof(PJRT_Plugin_Attributes_Args, num_attributes));
static_assert(sizeof(ours::EventDestroy) == sizeof(PJRT_Event_Destroy_Args));
static_assert(offsetof(ours::EventDestroy, event) == offsetof(PJRT_Event_Destroy_Args, event));
static_assert(sizeof(ours::EventIsReady) == sizeof(PJRT_Event_IsReady_Args));
static_assert(offsetof(ours::EventIsReady, event) == offsetof(PJRT_Event_IsReady_Args, event));
static_assert(offsetof(ours::EventIsReady, is_ready) == offsetof(PJRT_Event_IsReady_Args, is_ready));
static_assert(sizeof(ours::EventAwait) == sizeof(PJRT_Event_Await_Args));
static_assert(offsetof(ours::EventAwait, event) == offsetof(PJRT_Event_Await_Args, event));
static_assert(sizeof(ours::EventOnReady) == sizeof(PJRT_Event_OnReady_Args));
static_assert(offsetof(ours::EventOnReady, event) == offsetof(PJRT_Event_OnReady_Args, event));
static_assert(offsetof(ours::EventOnReady, callback) == offsetof(PJRT_Event_OnReady_Args, callback));
static_assert(offsetof(ours::EventOnReady, argument) == offsetof(PJRT_Event_OnReady_Args, user_arg));
static_assert(sizeof(ours::ClientCreate) == sizeof(PJRT_Client_Create_Args));
static_assert(offsetof(ours::ClientCreate, options) == offsetof(PJRT_Client_Create_Args, create_options));
static_assert(offsetof(ours::ClientCreate, num_options) == offsetof(PJRT_Client_Create_Args, num_options));
static_assert(offsetof(ours::ClientCreate, client) == offsetof(PJRT_Client_Create_Args, client));
static_assert(offsetof(ours::ClientCreate, try_get_value_argument) ==
              offsetof(PJRT_Client_Create_Args, kv_try_get_user_arg));
static_assert(sizeof(ours::ClientPlatformName) == sizeof(PJRT_Client_PlatformName_Args));
static_assert(offsetof(ours::ClientPlatformName, client) == offsetof(PJRT_Client_PlatformName_Args, client));
static_assert(offsetof(ours::ClientPlatformName, name) == offsetof(PJRT_Client_PlatformName_Args, platform_name));
static_assert(offsetof(ours::ClientPlatformName, name_size) ==
              offsetof(PJRT_Client_PlatformName_Args, platform_name_size));
static_assert(sizeof(ours::ClientPlatformVersion) == sizeof(PJRT_Client_PlatformVersion_Args));
static_assert(offsetof(ours::ClientPlatformVersion, client) == offsetof(PJRT_Client_PlatformVersion_Args, client));
static_assert(offsetof(ours::ClientPlatformVersion, version) ==
              offsetof(PJRT_Client_PlatformVersion_Args, platform_version));
static_assert(sizeof(ours::ClientAddressableDevices) == sizeof(PJRT_Client_AddressableDevices_Args));
static_assert(offsetof(ours::ClientAddressableDevices, devices) ==
              offsetof(PJRT_Client_AddressableDevices_Args, addressable_devices));
static_assert(offsetof(ours::ClientAddressableDevices, num_devices) ==
              offsetof(PJRT_Client_AddressableDevices_Args, num_addressable_devices));
static_assert(sizeof(ours::Program) == sizeof(PJRT_Program));
static_assert(offsetof(ours::Program, code) == offsetof(PJRT_Program, code));
static_assert(offsetof(ours::Program, code_size) == offsetof(PJRT_Program, code_size));
static_assert(offsetof(ours::Program, format) == offsetof(PJRT_Program, format));
static_assert(offsetof(ours::Program, format_size) == offsetof(PJRT_Program, format_size));
static_assert(sizeof(ours::ClientCompile) == sizeof(PJRT_Client_Compile_Args));
static_assert(offsetof(ours::ClientCompile, client) == offsetof(PJRT_Client_Compile_Args, client));
static_assert(offsetof(ours::ClientCompile, program) == offsetof(PJRT_Client_Compile_Args, program));
static_assert(offsetof(ours::ClientCompile, options) == offsetof(PJRT_Client_Compile_Args, compile_options));
static_assert(offsetof(ours::ClientCompile, options_size) == offsetof(PJRT_Client_Compile_Args, compile_options_size));
static_assert(offsetof(ours::ClientCompile, executable) == offsetof(PJRT_Client_Compile_Args, executable));
static_assert(sizeof(ours::TiledLayout) == sizeof(PJRT_Buffer_MemoryLayout_Tiled));
static_assert(offsetof(ours::TiledLayout, minor_to_major) == offsetof(PJRT_Buffer_MemoryLayout_Tiled, minor_to_major));
static_assert(offsetof(ours::TiledLayout, minor_to_major_size) ==
              offsetof(PJRT_Buffer_MemoryLayout_Tiled, minor_to_major_size));
static_assert(offsetof(ours::TiledLayout, tile_dims) == offsetof(PJRT_Buffer_MemoryLayout_Tiled, tile_dims));
static_assert(offsetof(ours::TiledLayout, tile_dim_sizes) == offsetof(PJRT_Buffer_MemoryLayout_Tiled, tile_dim_sizes));
static_assert(offsetof(ours::TiledLayout, num_tiles) == offsetof(PJRT_Buffer_MemoryLayout_Tiled, num_tiles));
static_assert(sizeof(ours::MemoryLayout) == sizeof(PJRT_Buffer_MemoryLayout));
static_assert(offsetof(ours::MemoryLayout, tiled) == offsetof(PJRT_Buffer_MemoryLayout, tiled));
static_assert(offsetof(ours::MemoryLayout, strides) == offsetof(PJRT_Buffer_MemoryLayout, strides));
static_assert(offsetof(ours::MemoryLayout, kind) == offsetof(PJRT_Buffer_MemoryLayout, type));
static_assert(sizeof(ours::BufferFromHostBuffer) == sizeof(PJRT_Client_BufferFromHostBuffer_Args));
static_assert(offsetof(ours::BufferFromHostBuffer, client) == offsetof(PJRT_Client_BufferFromHostBuffer_Args, client));
static_assert(offsetof(ours::BufferFromHostBuffer, data) == offsetof(PJRT_Client_BufferFromHostBuffer_Args, data));
static_assert(offsetof(ours::BufferFromHostBuffer, type) == offsetof(PJRT_Client_BufferFromHostBuffer_Args, type));
static_assert(offsetof(ours::BufferFromHostBuffer, dims) == offsetof(PJRT_Client_BufferFromHostBuffer_Args, dims));
static_assert(offsetof(ours::BufferFromHostBuffer, num_dims) ==
              offsetof(PJRT_Client_BufferFromHostBuffer_Args, num_dims));
static_assert(offsetof(ours::BufferFromHostBuffer, byte_strides) ==
              offsetof(PJRT_Client_BufferFromHostBuffer_Args, byte_strides));
static_assert(offsetof(ours::BufferFromHostBuffer, num_byte_strides) ==
              offsetof(PJRT_Client_BufferFromHostBuffer_Args, num_byte_strides));
static_assert(offsetof(ours::BufferFromHostBuffer, semantics) ==
              offsetof(PJRT_Client_BufferFromHostBuffer_Args, host_buffer_semantics));
static_assert(offsetof(ours::BufferFromHostBuffer, device) == offsetof(PJRT_Client_BufferFromHostBuffer_Args, device));
static_assert(offsetof(ours::BufferFromHostBuffer, memory) == offsetof(PJRT_Client_BufferFromHostBuffer_Args, memory));
static_assert(offsetof(ours::BufferFromHostBuffer, device_layout) ==
              offsetof(PJRT_Client_BufferFromHostBuffer_Args, device_layout));
static_assert(offsetof(ours::BufferFromHostBuffer, done_with_host_buffer) ==
              offsetof(PJRT_Client_BufferFromHostBuffer_Args, done_with_host_buffer));
static_assert(offsetof(ours::BufferFromHostBuffer, buffer) == offsetof(PJRT_Client_BufferFromHostBuffer_Args, buffer));
static_assert(sizeof(ours::DeviceGetDescription) == sizeof(PJRT_Device_GetDescription_Args));
static_assert(offsetof(ours::DeviceGetDescription, device) == offsetof(PJRT_Device_GetDescription_Args, device));
static_assert(offsetof(ours::DeviceGetDescription, description) ==
              offsetof(PJRT_Device_GetDescription_Args, device_description));
static_assert(sizeof(ours::DescriptionId) == sizeof(PJRT_DeviceDescription_Id_Args));
static_assert(offsetof(ours::DescriptionId, description) ==
              offsetof(PJRT_DeviceDescription_Id_Args, device_description));
static_assert(offsetof(ours::DescriptionId, id) == offsetof(PJRT_DeviceDescription_Id_Args, id));
static_assert(sizeof(ours::DescriptionKind) == sizeof(PJRT_DeviceDescription_Kind_Args));
static_assert(offsetof(ours::DescriptionKind, description) ==
              offsetof(PJRT_DeviceDescription_Kind_Args, device_description));
static_assert(offsetof(ours::DescriptionKind, kind) == offsetof(PJRT_DeviceDescription_Kind_Args, device_kind));
static_assert(offsetof(ours::DescriptionKind, kind_size) ==
              offsetof(PJRT_DeviceDescription_Kind_Args, device_kind_size));
static_assert(sizeof(ours::DeviceMemoryStats) == sizeof(PJRT_Device_MemoryStats_Args));
static_assert(offsetof(ours::DeviceMemoryStats, device) == offsetof(PJRT_Device_MemoryStats_Args, device));
static_assert(offsetof(ours::DeviceMemoryStats, bytes_in_use) == offsetof(PJRT_Device_MemoryStats_Args, bytes_in_use));
static_assert(offsetof(ours::DeviceMemoryStats, peak_bytes_in_use) ==
              offsetof(PJRT_Device_MemoryStats_Args, peak_bytes_in_use));
static_assert(offsetof(ours::DeviceMemoryStats, peak_bytes_in_use_is_set) ==
              offsetof(PJRT_Device_MemoryStats_Args, peak_bytes_in_use_is_set));
static_assert(offsetof(ours::DeviceMemoryStats, bytes_limit) == offsetof(PJRT_Device_MemoryStats_Args, bytes_limit));
static_assert(offsetof(ours::DeviceMemoryStats, bytes_limit_is_set) ==
              offsetof(PJRT_Device_MemoryStats_Args, bytes_limit_is_set));
static_assert(offsetof(ours::DeviceMemoryStats, peak_pool_bytes_is_set) ==
              offsetof(PJRT_Device_MemoryStats_Args, peak_pool_bytes_is_set));
static_assert(sizeof(ours::ExecutableDestroy) == sizeof(PJRT_Executable_Destroy_Args));
static_assert(offsetof(ours::ExecutableDestroy, executable) == offsetof(PJRT_Executable_Destroy_Args, executable));
static_assert(sizeof(ours::ExecutableSerialize) == sizeof(PJRT_Executable_Serialize_Args));
static_assert(offsetof(ours::ExecutableSerialize, executable) == offsetof(PJRT_Executable_Serialize_Args, executable));
static_assert(offsetof(ours::ExecutableSerialize, bytes) == offsetof(PJRT_Executable_Serialize_Args, serialized_bytes));
static_assert(offsetof(ours::ExecutableSerialize, bytes_size) ==
              offsetof(PJRT_Executable_Serialize_Args, serialized_bytes_size));
static_assert(offsetof(ours::ExecutableSerialize, serialized) ==
              offsetof(PJRT_Executable_Serialize_Args, serialized_executable));
static_assert(offsetof(ours::ExecutableSerialize, destroy) ==
              offsetof(PJRT_Executable_Serialize_Args, serialized_executable_deleter));
static_assert(offsetof(ours::ExecutableMemoryStats, executable) ==
              offsetof(PJRT_Executable_GetCompiledMemoryStats_Args, executable));
static_assert(offsetof(ours::ExecutableMemoryStats, argument_bytes) ==
              offsetof(PJRT_Executable_GetCompiledMemoryStats_Args, argument_size_in_bytes));
static_assert(offsetof(ours::ExecutableMemoryStats, alias_bytes) ==
              offsetof(PJRT_Executable_GetCompiledMemoryStats_Args, alias_size_in_bytes));
static_assert(offsetof(ours::ExecutableMemoryStats, temp_bytes) ==
              offsetof(PJRT_Executable_GetCompiledMemoryStats_Args, temp_size_in_bytes));
static_assert(offsetof(ours::ExecutableMemoryStats, host_temp_bytes) ==
              offsetof(PJRT_Executable_GetCompiledMemoryStats_Args, host_temp_size_in_bytes));
static_assert(sizeof(ours::LoadedExecutableGetExecutable) == sizeof(PJRT_LoadedExecutable_GetExecutable_Args));
static_assert(offsetof(ours::LoadedExecutableGetExecutable, loaded) ==
              offsetof(PJRT_LoadedExecutable_GetExecutable_Args, loaded_executable));
static_assert(offsetof(ours::LoadedExecutableGetExecutable, executable) ==
              offsetof(PJRT_LoadedExecutable_GetExecutable_Args, executable));
static_assert(sizeof(ours::LoadedExecutableDestroy) == sizeof(PJRT_LoadedExecutable_Destroy_Args));
static_assert(offsetof(ours::LoadedExecutableDestroy, executable) ==
              offsetof(PJRT_LoadedExecutable_Destroy_Args, executable));
static_assert(sizeof(ours::ExecutableDeserializeAndLoad) == sizeof(PJRT_Executable_DeserializeAndLoad_Args));
static_assert(offsetof(ours::ExecutableDeserializeAndLoad, client) ==
              offsetof(PJRT_Executable_DeserializeAndLoad_Args, client));
static_assert(offsetof(ours::ExecutableDeserializeAndLoad, bytes) ==
              offsetof(PJRT_Executable_DeserializeAndLoad_Args, serialized_executable));
static_assert(offsetof(ours::ExecutableDeserializeAndLoad, bytes_size) ==
              offsetof(PJRT_Executable_DeserializeAndLoad_Args, serialized_executable_size));
static_assert(offsetof(ours::ExecutableDeserializeAndLoad, executable) ==
              offsetof(PJRT_Executable_DeserializeAndLoad_Args, loaded_executable));
static_assert(offsetof(ours::ExecutableDeserializeAndLoad, options) ==
              offsetof(PJRT_Executable_DeserializeAndLoad_Args, overridden_serialized_compile_options));
static_assert(sizeof(ours::ExecuteOptions) == sizeof(PJRT_ExecuteOptions));
static_assert(offsetof(ours::ExecuteOptions, send_callbacks) == offsetof(PJRT_ExecuteOptions, send_callbacks));
static_assert(offsetof(ours::ExecuteOptions, launch_id) == offsetof(PJRT_ExecuteOptions, launch_id));
static_assert(offsetof(ours::ExecuteOptions, non_donatable_inputs) ==
              offsetof(PJRT_ExecuteOptions, non_donatable_input_indices));
static_assert(offsetof(ours::ExecuteOptions, num_non_donatable_inputs) ==
              offsetof(PJRT_ExecuteOptions, num_non_donatable_input_indices));
static_assert(offsetof(ours::ExecuteOptions, context) == offsetof(PJRT_ExecuteOptions, context));
static_assert(offsetof(ours::ExecuteOptions, call_location) == offsetof(PJRT_ExecuteOptions, call_location));
static_assert(offsetof(ours::ExecuteOptions, num_tasks) == offsetof(PJRT_ExecuteOptions, num_tasks));
static_assert(offsetof(ours::ExecuteOptions, task_ids) == offsetof(PJRT_ExecuteOptions, task_ids));
static_assert(offsetof(ours::ExecuteOptions, incarnation_ids) == offsetof(PJRT_ExecuteOptions, incarnation_ids));
static_assert(sizeof(ours::LoadedExecutableExecute) == sizeof(PJRT_LoadedExecutable_Execute_Args));
static_assert(offsetof(ours::LoadedExecutableExecute, executable) ==
              offsetof(PJRT_LoadedExecutable_Execute_Args, executable));
static_assert(offsetof(ours::LoadedExecutableExecute, options) ==
              offsetof(PJRT_LoadedExecutable_Execute_Args, options));
static_assert(offsetof(ours::LoadedExecutableExecute, argument_lists) ==
              offsetof(PJRT_LoadedExecutable_Execute_Args, argument_lists));
static_assert(offsetof(ours::LoadedExecutableExecute, num_devices) ==
              offsetof(PJRT_LoadedExecutable_Execute_Args, num_devices));
static_assert(offsetof(ours::LoadedExecutableExecute, num_arguments) ==
              offsetof(PJRT_LoadedExecutable_Execute_Args, num_args));
static_assert(offsetof(ours::LoadedExecutableExecute, output_lists) ==
              offsetof(PJRT_LoadedExecutable_Execute_Args, output_lists));
static_assert(offsetof(ours::LoadedExecutableExecute, device_complete_events) ==
              offsetof(PJRT_LoadedExecutable_Execute_Args, device_complete_events));
static_assert(offsetof(ours::LoadedExecutableExecute, execute_device) ==
              offsetof(PJRT_LoadedExecutable_Execute_Args, execute_device));
static_assert(sizeof(ours::BufferDestroy) == sizeof(PJRT_Buffer_Destroy_Args));
static_assert(offsetof(ours::BufferDestroy, buffer) == offsetof(PJRT_Buffer_Destroy_Args, buffer));
static_assert(sizeof(ours::BufferIsDeleted) == sizeof(PJRT_Buffer_IsDeleted_Args));
static_assert(offsetof(ours::BufferIsDeleted, buffer) == offsetof(PJRT_Buffer_IsDeleted_Args, buffer));
static_assert(offsetof(ours::BufferIsDeleted, is_deleted) == offsetof(PJRT_Buffer_IsDeleted_Args, is_deleted));
static_assert(sizeof(ours::BufferCopyToDevice) == sizeof(PJRT_Buffer_CopyToDevice_Args));
static_assert(offsetof(ours::BufferCopyToDevice, buffer) == offsetof(PJRT_Buffer_CopyToDevice_Args, buffer));
static_assert(offsetof(ours::BufferCopyToDevice, device) == offsetof(PJRT_Buffer_CopyToDevice_Args, dst_device));
static_assert(offsetof(ours::BufferCopyToDevice, copy) == offsetof(PJRT_Buffer_CopyToDevice_Args, dst_buffer));
static_assert(sizeof(ours::BufferToHostBuffer) == sizeof(PJRT_Buffer_ToHostBuffer_Args));
static_assert(offsetof(ours::BufferToHostBuffer, source) == offsetof(PJRT_Buffer_ToHostBuffer_Args, src));
static_assert(offsetof(ours::BufferToHostBuffer, host_layout) == offsetof(PJRT_Buffer_ToHostBuffer_Args, host_layout));
static_assert(offsetof(ours::BufferToHostBuffer, destination) == offsetof(PJRT_Buffer_ToHostBuffer_Args, dst));
static_assert(offsetof(ours::BufferToHostBuffer, destination_size) ==
              offsetof(PJRT_Buffer_ToHostBuffer_Args, dst_size));
static_assert(offsetof(ours::BufferToHostBuffer, event) == offsetof(PJRT_Buffer_ToHostBuffer_Args, event));
static_assert(sizeof(ours::BufferReadyEvent) == sizeof(PJRT_Buffer_ReadyEvent_Args));
static_assert(offsetof(ours::BufferReadyEvent, buffer) == offsetof(PJRT_Buffer_ReadyEvent_Args, buffer));
static_assert(offsetof(ours::BufferReadyEvent, event) == offsetof(PJRT_Buffer_ReadyEvent_Args, event));

// Places in the table of functions.
static_assert(offsetof(ours::Api, error_destroy) == offsetof(PJRT_Api, PJRT_Error_Destroy));
static_assert(offsetof(ours::Api, error_message) == offsetof(PJRT_Api, PJRT_Error_Message));
static_assert(offsetof(ours::Api, error_get_code) == offsetof(PJRT_Api, PJRT_Error_GetCode));
static_assert(offsetof(ours::Api, plugin_initialize) == offsetof(PJRT_Api, PJRT_Plugin_Initialize));
static_assert(offsetof(ours::Api, plugin_attributes) == offsetof(PJRT_Api, PJRT_Plugin_Attributes));
static_assert(offsetof(ours::Api, event_destroy) == offsetof(PJRT_Api, PJRT_Event_Destroy));
static_assert(offsetof(ours::Api, event_is_ready) == offsetof(PJRT_Api, PJRT_Event_IsReady));
static_assert(offsetof(ours::Api, event_await) == offsetof(PJRT_Api, PJRT_Event_Await));
static_assert(offsetof(ours::Api, event_on_ready) == offsetof(PJRT_Api, PJRT_Event_OnReady));
static_assert(offsetof(ours::Api, client_create) == offsetof(PJRT_Api, PJRT_Client_Create));
static_assert(offsetof(ours::Api, client_platform_name) == offsetof(PJRT_Api, PJRT_Client_PlatformName));
static_assert(offsetof(ours::Api, client_platform_version) == offsetof(PJRT_Api, PJRT_Client_PlatformVersion));
static_assert(offsetof(ours::Api, client_addressable_devices) == offsetof(PJRT_Api, PJRT_Client_AddressableDevices));
static_assert(offsetof(ours::Api, client_compile) == offsetof(PJRT_Api, PJRT_Client_Compile));
static_assert(offsetof(ours::Api, buffer_from_host_buffer) == offsetof(PJRT_Api, PJRT_Client_BufferFromHostBuffer));
static_assert(offsetof(ours::Api, description_id) == offsetof(PJRT_Api, PJRT_DeviceDescription_Id));
static_assert(offsetof(ours::Api, description_kind) == offsetof(PJRT_Api, PJRT_DeviceDescription_Kind));
static_assert(offsetof(ours::Api, device_get_description) == offsetof(PJRT_Api, PJRT_Device_GetDescription));
static_assert(offsetof(ours::Api, device_memory_stats) == offsetof(PJRT_Api, PJRT_Device_MemoryStats));
static_assert(offsetof(ours::Api, executable_destroy) == offsetof(PJRT_Api, PJRT_Executable_Destroy));
static_assert(offsetof(ours::Api, executable_serialize) == offsetof(PJRT_Api, PJRT_Executable_Serialize));
static_assert(offsetof(ours::Api, loaded_executable_destroy) == offsetof(PJRT_Api, PJRT_LoadedExecutable_Destroy));
static_assert(offsetof(ours::Api, loaded_executable_get_executable) ==
              offsetof(PJRT_Api, PJRT_LoadedExecutable_GetExecutable));
static_assert(offsetof(ours::Api, loaded_executable_execute) == offsetof(PJRT_Api, PJRT_LoadedExecutable_Execute));
static_assert(offsetof(ours::Api, executable_deserialize_and_load) ==
              offsetof(PJRT_Api, PJRT_Executable_DeserializeAndLoad));
static_assert(offsetof(ours::Api, buffer_destroy) == offsetof(PJRT_Api, PJRT_Buffer_Destroy));
static_assert(offsetof(ours::Api, buffer_is_deleted) == offsetof(PJRT_Api, PJRT_Buffer_IsDeleted));
static_assert(offsetof(ours::Api, buffer_copy_to_device) == offsetof(PJRT_Api, PJRT_Buffer_CopyToDevice));
static_assert(offsetof(ours::Api, buffer_to_host_buffer) == offsetof(PJRT_Api, PJRT_Buffer_ToHostBuffer));
static_assert(offsetof(ours::Api, buffer_ready_event) == offsetof(PJRT_Api, PJRT_Buffer_ReadyEvent));
static_assert(offsetof(ours::Api, executable_memory_stats) ==
              offsetof(PJRT_Api, PJRT_Executable_GetCompiledMemoryStats));

// Numbers.
static_assert(ours::api_major == PJRT_API_MAJOR);
static_assert(static_cast<int>(ours::Type::pred) == PJRT_Buffer_Type_PRED);
static_assert(static_cast<int>(ours::Type::s8) == PJRT_Buffer_Type_S8);
static_assert(static_cast<int>(ours::Type::s16) == PJRT_Buffer_Type_S16);
static_assert(static_cast<int>(ours::Type::s32) == PJRT_Buffer_Type_S32);
static_assert(static_cast<int>(ours::Type::s64) == PJRT_Buffer_Type_S64);
static_assert(static_cast<int>(ours::Type::u8) == PJRT_Buffer_Type_U8);
static_assert(static_cast<int>(ours::Type::u16) == PJRT_Buffer_Type_U16);
static_assert(static_cast<int>(ours::Type::u32) == PJRT_Buffer_Type_U32);
static_assert(static_cast<int>(ours::Type::u64) == PJRT_Buffer_Type_U64);
static_assert(static_cast<int>(ours::Type::f16) == PJRT_Buffer_Type_F16);
static_assert(static_cast<int>(ours::Type::f32) == PJRT_Buffer_Type_F32);
static_assert(static_cast<int>(ours::Type::f64) == PJRT_Buffer_Type_F64);
static_assert(static_cast<int>(ours::Type::bf16) == PJRT_Buffer_Type_BF16);
static_assert(static_cast<int>(ours::Code::resource_exhausted) == PJRT_Error_Code_RESOURCE_EXHAUSTED);
static_assert(static_cast<int>(ours::Code::invalid_argument) == PJRT_Error_Code_INVALID_ARGUMENT);
static_assert(static_cast<int>(ours::Code::internal) == PJRT_Error_Code_INTERNAL);
static_assert(static_cast<int>(ours::NamedValue::Type::text) == PJRT_NamedValue_kString);
static_assert(static_cast<int>(ours::NamedValue::Type::int64) == PJRT_NamedValue_kInt64);
static_assert(static_cast<int>(ours::NamedValue::Type::float32) == PJRT_NamedValue_kFloat);
static_assert(static_cast<int>(ours::NamedValue::Type::boolean) == PJRT_NamedValue_kBool);
static_assert(static_cast<int>(ours::HostBufferSemantics::until_transfer_completes) ==
              PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes);
static_assert(static_cast<int>(ours::MemoryLayout::Kind::tiled) == PJRT_Buffer_MemoryLayout_Type_Tiled);
