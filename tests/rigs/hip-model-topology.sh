#!/bin/sh
# hip-model-topology.sh FOLDER VERSION DEVICE WAVE
# Writes the topology of one modelled AMD GPU, in the form of the kernel's /sys/class/kfd/kfd/topology, for ROCr's model
# mode (HSA_MODEL_TOPOLOGY). VERSION is gfx_target_version (90402 is gfx942), DEVICE the PCI device id, WAVE the wavefront
# size. Node 0 is the CPU, node 1 the GPU; with no SDMA engine the runtime copies by kernels, which hip-model-gpu.c knows.
set -eu

folder=$1 version=$2 device=$3 wave=$4

# put FILE NAME VALUE...: a properties file
put() {
	file=$folder/nodes/$1
	shift
	mkdir -p "$(dirname "$file")"
	: >"$file"
	while [ $# -gt 0 ]; do
		echo "$1 $2" >>"$file"
		shift 2
	done
}

rm -rf "$folder"
mkdir -p "$folder/nodes/0" "$folder/nodes/1"
echo 1 >"$folder/generation_id"
printf 'platform_oem 0\nplatform_id 0\nplatform_rev 0\n' >"$folder/system_properties"
echo 0 >"$folder/nodes/0/gpu_id"
echo 2 >"$folder/nodes/1/gpu_id"
echo >"$folder/nodes/0/name"
echo modelled >"$folder/nodes/1/name"

put 0/properties cpu_cores_count 2 simd_count 0 mem_banks_count 1 caches_count 0 io_links_count 1 p2p_links_count 0 \
	cpu_core_id_base 0 simd_id_base 0 max_waves_per_simd 0 lds_size_in_kb 0 gds_size_in_kb 0 num_gws 0 \
	wave_front_size 0 array_count 0 simd_arrays_per_engine 0 cu_per_simd_array 0 simd_per_cu 0 \
	max_slots_scratch_cu 0 gfx_target_version 0 vendor_id 0 device_id 0 location_id 0 domain 0 drm_render_minor 0 \
	hive_id 0 num_sdma_engines 0 num_sdma_xgmi_engines 0 num_sdma_queues_per_engine 0 num_cp_queues 0 \
	max_engine_clk_ccompute 3000
put 0/mem_banks/0/properties heap_type 0 size_in_bytes 16000000000 flags 0 width 64 mem_clk_max 3200
put 0/io_links/0/properties type 2 version_major 0 version_minor 0 node_from 0 node_to 1 weight 20 min_latency 0 \
	max_latency 0 min_bandwidth 0 max_bandwidth 0 recommended_transfer_size 0 flags 13

# capability 8256: VALimit, and doorbells of 64 bits, which AQL queues need (HSA_CAPABILITY of libhsakmt's hsakmttypes.h).
put 1/properties cpu_cores_count 0 simd_count 416 mem_banks_count 1 caches_count 2 io_links_count 1 p2p_links_count 0 \
	cpu_core_id_base 0 simd_id_base 2147487744 max_waves_per_simd 8 lds_size_in_kb 64 gds_size_in_kb 0 num_gws 64 \
	wave_front_size "$wave" array_count 8 simd_arrays_per_engine 1 cu_per_simd_array 14 simd_per_cu 4 \
	max_slots_scratch_cu 32 gfx_target_version "$version" vendor_id 4098 device_id "$device" location_id 768 domain 0 \
	drm_render_minor 128 hive_id 0 num_sdma_engines 0 num_sdma_xgmi_engines 0 num_sdma_queues_per_engine 0 \
	num_cp_queues 24 max_engine_clk_fcompute 1700 local_mem_size 0 fw_version 67 capability 8256 capability2 0 \
	debug_prop 1511 sdma_fw_version 8 unique_id 1 num_xcc 1 max_engine_clk_ccompute 3000
put 1/mem_banks/0/properties heap_type 1 size_in_bytes 68702699520 flags 0 width 4096 mem_clk_max 1600
put 1/io_links/0/properties type 2 version_major 0 version_minor 0 node_from 1 node_to 0 weight 20 min_latency 0 \
	max_latency 0 min_bandwidth 0 max_bandwidth 0 recommended_transfer_size 0 flags 1
for cache in 0 1; do
	put 1/caches/$cache/properties processor_id_low 2147487744 level $((cache + 1)) \
		size $((cache ? 6144 : 32)) cache_line_size 128 cache_lines_per_tag 1 association 0 latency 0 type 9 \
		sibling_map 1
done
