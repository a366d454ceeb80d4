package signature

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Packet types of RFC 9580 that are looked for.
const (
	packetSignature     = 2
	packetSecretKey     = 5
	packetPublicKey     = 6
	packetSecretSubkey  = 7
	packetUser          = 13
	packetPublicSubkey  = 14
	packetUserAttribute = 17
)

// A signature that is part of another one. A subkey vouches for its primary key with it; over a commit it is of no use.
const subpacketSignature = 32

// opaque is one OpenPGP packet.
type opaque struct {
	tag  int
	body []byte
	// whole is the packet with its header.
	whole []byte
}

// splitPackets takes data apart into packets, no more than most. Lengths that are only known at the end are for streams, and refused.
func splitPackets(data []byte, most int) ([]opaque, error) {
	var all []opaque
	for len(data) > 0 {
		if len(all) == most {
			return nil, fmt.Errorf("it has more than %d packets", most)
		}
		tag, header, length, err := packetHeader(data)
		if err != nil {
			return nil, err
		}
		if length > len(data)-header {
			return nil, errors.New("a packet is cut off")
		}
		all = append(all, opaque{tag: tag, body: data[header : header+length], whole: data[:header+length]})
		data = data[header+length:]
	}
	return all, nil
}

func packetHeader(data []byte) (tag, header, length int, err error) {
	first := data[0]
	if first&0x80 == 0 {
		return 0, 0, 0, errors.New("it is no OpenPGP packet")
	}
	if first&0x40 == 0 { // the old form
		size := 1 << (first & 3)
		if size > 4 {
			return 0, 0, 0, errors.New("a packet has no length")
		}
		if len(data) < 1+size {
			return 0, 0, 0, errors.New("a packet is cut off")
		}
		for _, b := range data[1 : 1+size] {
			length = length<<8 | int(b)
		}
		return int(first >> 2 & 0xf), 1 + size, length, nil
	}
	length, size, err := newLength(data[1:])
	return int(first & 0x3f), 1 + size, length, err
}

// newLength reads a length of the new form, which packets and subpackets share but for the partial ones.
func newLength(data []byte) (length, size int, err error) {
	switch {
	case len(data) >= 1 && data[0] < 192:
		return int(data[0]), 1, nil
	case len(data) >= 2 && data[0] < 224:
		return (int(data[0])-192)<<8 + int(data[1]) + 192, 2, nil
	case len(data) >= 5 && data[0] == 255:
		return int(binary.BigEndian.Uint32(data[1:])), 5, nil
	case len(data) >= 1 && data[0] >= 224 && data[0] < 255:
		return 0, 0, errors.New("a packet comes in parts")
	}
	return 0, 0, errors.New("a length is cut off")
}

// errVersion is a signature of another version than 4.
var errVersion = errors.New("OpenPGP signature of a version that is not supported")

// checkSignaturePacket looks at the frame of a signature before a library does, which would make room for whatever lengths it is told. Signatures
// within signatures go down to a depth.
func checkSignaturePacket(body []byte, depth int) error {
	if len(body) < 6 {
		return errors.New("the packet is cut off")
	}
	if body[0] != 4 {
		return fmt.Errorf("%w: %d", errVersion, body[0])
	}
	rest := body[4:]
	for range 2 { // what is signed, and what is not
		if len(rest) < 2 {
			return errors.New("the packet is cut off")
		}
		length := int(binary.BigEndian.Uint16(rest))
		if rest = rest[2:]; length > len(rest) {
			return errors.New("the packet is cut off")
		}
		if err := checkSubpackets(rest[:length], depth); err != nil {
			return err
		}
		rest = rest[length:]
	}
	return nil
}

func checkSubpackets(area []byte, depth int) error {
	for len(area) > 0 {
		length, size := 0, 0
		var err error
		if area[0] >= 224 && area[0] < 255 { // in subpackets these are lengths of two bytes
			if len(area) < 2 {
				return errors.New("a length is cut off")
			}
			length, size = (int(area[0])-192)<<8+int(area[1])+192, 2
		} else if length, size, err = newLength(area); err != nil {
			return err
		}
		if length < 1 || length > len(area)-size {
			return errors.New("a subpacket is cut off")
		}
		if area[size]&0x7f == subpacketSignature {
			if depth == 0 {
				return errors.New("it holds another signature")
			}
			if err := checkSignaturePacket(area[size+1:size+length], depth-1); err != nil {
				return err
			}
		}
		area = area[size+length:]
	}
	return nil
}

// cleanKeys leaves what is read of keys: all in version 4, and without signatures that cannot be read, which are those of others in old forms.
func cleanKeys(packets []opaque) ([]byte, error) {
	var data []byte
	for _, p := range packets {
		switch p.tag {
		case packetSecretKey, packetSecretSubkey:
			return nil, errPrivate
		case packetSignature:
			if checkSignaturePacket(p.body, 1) != nil {
				continue
			}
		case packetPublicKey, packetPublicSubkey:
			if len(p.body) == 0 || p.body[0] != 4 {
				return nil, errors.New("it holds an OpenPGP key of another version than 4, which is not supported")
			}
		case packetUser, packetUserAttribute:
		default:
			continue
		}
		data = append(data, p.whole...)
	}
	return data, nil
}
